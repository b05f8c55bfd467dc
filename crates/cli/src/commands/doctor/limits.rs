//! The limit of open files.

use super::finding::Finding;
use crate::commands::serve::possible_clients;
use crate::outcome::Failure;
use crate::settings::LoadedSettings;

/// Files for all that is not a connection: threads, files of data, the log and the admin endpoint.
const OTHER_FILES: u64 = 256;

/// Checks that the hard limit, to which the server raises its own, allows as many connections as
/// configured.
pub(super) fn open_files(loaded: &LoadedSettings) -> Finding {
    of_possible(possible_clients(loaded), loaded.settings.max_clients)
}

fn of_possible(possible: Result<u64, Failure>, max_clients: u64) -> Finding {
    let name = "open files";
    let possible = match possible {
        Ok(possible) if possible >= max_clients => {
            return Finding::ok(name, format!("enough for {max_clients} connections"));
        }
        Ok(possible) => possible,
        Err(failure) => return Finding::problem(name, "too few", failure.into_message()),
    };
    let found = format!("enough for {possible} connections, and max-clients is {max_clients}");
    let needed = max_clients + OTHER_FILES;
    let advice = format!(
        "raise the hard limit: LimitNOFILE={needed} in the systemd unit, --ulimit \
         nofile={needed} of the container, or `ulimit -n {needed}` as root; or lower max-clients"
    );
    Finding::problem(name, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;

    #[test]
    fn connections_need_files() {
        assert_eq!(of_possible(Ok(10_000), 10_000).status, Status::Ok);
        let finding = of_possible(Ok(900), 10_000);
        assert_eq!(finding.status, Status::Problem);
        assert!(finding.advice.is_some_and(|advice| advice.contains("LimitNOFILE=10256")));
        let none = of_possible(Err(Failure::Error("raise it".to_owned())), 10_000);
        assert_eq!((none.status, none.advice.as_deref()), (Status::Problem, Some("raise it")));
    }
}
