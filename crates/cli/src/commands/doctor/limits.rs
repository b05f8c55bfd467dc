//! The limit of open files.

use super::finding::Finding;
use crate::process::raise_file_limit;

/// Files for all that is not a connection: threads, files of data, the log and the admin endpoint.
const OTHER_FILES: u64 = 256;

/// Checks that the hard limit, to which the server raises its own, allows as many connections as
/// configured.
pub(super) fn open_files(max_clients: u64) -> Finding {
    of_limit(raise_file_limit(), max_clients)
}

fn of_limit(limit: u64, max_clients: u64) -> Finding {
    let needed = max_clients + OTHER_FILES;
    let found = format!("at most {limit}, and {needed} are needed for {max_clients} connections");
    if limit >= needed {
        return Finding::ok("open files", found);
    }
    let advice = format!(
        "raise the hard limit: LimitNOFILE={needed} in the systemd unit, --ulimit \
         nofile={needed} of the container, or `ulimit -n {needed}` as root; or lower max-clients"
    );
    Finding::problem("open files", found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;

    #[test]
    fn connections_need_files() {
        assert_eq!(of_limit(20_000, 10_000).status, Status::Ok);
        let finding = of_limit(1024, 10_000);
        assert_eq!(finding.status, Status::Problem);
        assert!(finding.advice.is_some_and(|advice| advice.contains("LimitNOFILE=10256")));
    }
}
