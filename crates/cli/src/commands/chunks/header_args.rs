//! The arguments for headers of requests to an HTTP origin.

use crate::files::{read_text, warn_if_world_readable};
use crate::outcome::Failure;
use clap::Args;
use nuthatch_origins::Access;

/// Maximum length of a file of headers, in bytes.
const MAX_HEADERS_LEN: u64 = 1 << 20;

/// The headers of requests to the origin.
#[derive(Clone, Debug, Args)]
pub(super) struct HeaderArgs {
    /// Header to send to the origin, "NAME: VALUE", or @FILE with one per line; can be repeated
    ///
    /// Use a file for secrets: other users can see the arguments of a command. Headers are sent
    /// only to the host of the address.
    #[arg(long = "header", value_name = "HEADER")]
    headers: Vec<String>,
}

impl HeaderArgs {
    pub(super) fn access(&self) -> Result<Access, Failure> {
        let mut access = Access::new();
        for (number, header) in self.headers.iter().enumerate() {
            let Some(file) = header.strip_prefix('@') else {
                let wrong = |expected| format!("--header {}: expected {expected}", number + 1);
                access = access.line(header).map_err(|expected| Failure::Usage(wrong(expected)))?;
                continue;
            };
            warn_if_world_readable(file.as_ref());
            let text = read_text(file, MAX_HEADERS_LEN)?;
            for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
                let wrong = |expected| format!("{file}, line {}: expected {expected}", number + 1);
                access = access.line(line).map_err(|expected| Failure::Error(wrong(expected)))?;
            }
        }
        Ok(access)
    }
}
