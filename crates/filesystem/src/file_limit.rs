//! Advice about the limit of open files.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;

/// Returns advice for an error of opening a file or socket because too many files are open: the
/// limit, and how to raise it. The text begins with `;`, to be appended to an error message.
/// Returns `None` for all other errors.
#[must_use]
pub fn file_limit_advice(error: &io::Error) -> Option<String> {
    match error.raw_os_error().map(Errno::from_raw_os_error)? {
        Errno::MFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let limit = limit.map_or_else(|| "any number of".to_owned(), |limit| limit.to_string());
            let raise = "raise the limit (`ulimit -n`, LimitNOFILE= of systemd)";
            Some(format!("; this process may have {limit} open files: {raise}"))
        }
        Errno::NFILE => {
            let raise = "raise the limit of the machine (`sysctl fs.file-max`)";
            Some(format!("; all processes together have too many open files: {raise}"))
        }
        _ => None,
    }
}
