//! The limit of open files of this process, and how many connections it allows.

use crate::logs::warn;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// Files that are kept for the admin endpoint, logs and files that are read again.
const SPARE_FILES: u64 = 64;

/// Raises the limit of open files as far as this process may, and returns it.
pub(crate) fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        return limit.maximum.unwrap_or(u64::MAX);
    }
    limit.current.unwrap_or(u64::MAX)
}

/// Returns how many files of this limit are kept for all that is not a connection: 64, or a quarter
/// of a low limit.
pub(crate) fn spare_files(file_limit: u64) -> u64 {
    SPARE_FILES.min(file_limit / 4)
}

/// Returns how many connections there can be with this limit of open files. With a limit, the
/// server opens as many files for something else as `other_files` returns.
///
/// # Errors
///
/// Returns how many files are needed if the limit allows no connection at all.
pub(crate) fn max_connections(
    file_limit: u64,
    other_files: impl Fn(u64) -> u64,
) -> Result<u64, String> {
    let open = fs::read_dir("/proc/self/fd").map_or(16, |files| files.count() as u64);
    let free = |limit: u64| limit.saturating_sub(open + other_files(limit) + spare_files(limit));
    match free(file_limit) {
        0 => {
            let enough = (file_limit..1 << 20).find(|limit| free(*limit) > 0);
            let enough = enough.unwrap_or(1 << 20);
            Err(format!(
                "expected a limit of at least {enough} open files, found {file_limit}; raise it \
                 (`ulimit -n`, LimitNOFILE= of systemd)"
            ))
        }
        connections => Ok(connections),
    }
}

/// Returns how many connections a server accepts: as many as configured under this name, or fewer
/// with a warning.
pub(crate) fn limit_connections(name: &str, configured: u64, limit: u64) -> u64 {
    if configured > limit {
        let raise = "raise the limit of open files (`ulimit -n`, LimitNOFILE= of systemd)";
        warn(format_args!(
            "{name} is {limit} instead of {configured}: the process may open too few files \
             for more; {raise}"
        ));
    }
    configured.min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_open_files_leave_room_for_fewer_clients() {
        let clients = |limit| max_connections(limit, |_| 12);
        assert!(clients(1 << 20).is_ok_and(|clients| clients > 1_000_000));
        assert!(clients(1024).is_ok_and(|clients| (700..1024).contains(&clients)));
        assert!(clients(12).is_err_and(|problem| problem.contains("ulimit -n")));
    }
}
