//! Files with the tokens of clients.

use crate::files::{read_text, warn_if_world_readable};
use crate::outcome::Failure;
use nuthatch_rpc::Tokens;

/// The maximum length of a file of tokens, in bytes.
const MAX_TOKENS_LEN: u64 = 16 << 20;

/// Reads a file of tokens.
pub(crate) fn read_tokens(file: &str) -> Result<Tokens, Failure> {
    warn_if_world_readable(file.as_ref());
    let text = read_text(file, MAX_TOKENS_LEN)?;
    Tokens::parse(&text).map_err(|error| Failure::Error(format!("{file}: {error}")))
}
