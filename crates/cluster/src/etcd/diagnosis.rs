//! Finds out why a request failed, and what an operator should do.

use super::problem::{Diagnosis, ProblemKind};
use super::tls::Security;
use super::transport;
use std::error::Error;
use std::fmt;
use tonic::{Code, Status};

/// Errors of etcd without a status code of their own.
const LOGIN_DISABLED: &str = "authentication is not enabled";
const LOGIN_FAILED: &str = "authentication failed";
const LOGIN_REQUIRED: &str = "user name is empty";
/// Permissions have changed since the token was issued; the words of etcd 3.4 and of later ones.
const TOKEN_OUTDATED: [&str; 2] = ["revision in header is old", "revision of auth store is old"];
const TOKEN_INVALID: &str = "invalid auth token";
const PERMISSION_DENIED: &str = "permission denied";
const NO_SPACE: &str = "database space exceeded";
/// The words of errors of a member that knows no leader.
const NO_LEADER: [&str; 4] =
    ["no leader", "leader changed", "etcdserver: request timed out", "unhealthy cluster"];

/// What to do if an endpoint without and with TLS does not respond.
const NO_RESPONSE_ADVICE: [&str; 2] = [
    "check the network and the load of etcd; if it has TLS, begin the URL with etcds://",
    "check the network, the load of etcd, and that it has TLS at this endpoint",
];

/// The error for a response of another cluster of etcd than before.
#[derive(Debug)]
pub(super) struct OtherCluster {
    pub(super) expected: u64,
    pub(super) found: u64,
}

impl fmt::Display for OtherCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, found } = self;
        write!(f, "expected the cluster {expected:x} of etcd, found {found:x}")
    }
}

impl Error for OtherCluster {}

/// Returns why a request failed.
pub(super) fn diagnose(status: &Status, security: Security) -> Diagnosis {
    if let Some(error) = status.source() {
        if error.is::<OtherCluster>() {
            let advice = "name endpoints of one cluster of etcd only; if etcd is new, stop all \
                          nodes of the cluster and then start them";
            return Diagnosis::new(ProblemKind::OtherCluster, error, advice);
        }
        return transport::diagnose(error, security);
    }
    let kind = kind(status);
    let advice = match (kind, security) {
        (ProblemKind::NoResponse, Security::None) => NO_RESPONSE_ADVICE[0],
        (ProblemKind::NoResponse, _) => NO_RESPONSE_ADVICE[1],
        _ => advice(kind),
    };
    let found = match status.message() {
        "" => status.code().description(),
        message => message,
    };
    Diagnosis::new(kind, found, advice)
}

fn kind(status: &Status) -> ProblemKind {
    let message = status.message();
    let has = |text: &str| message.contains(text);
    match status.code() {
        Code::DeadlineExceeded => ProblemKind::NoResponse,
        Code::Unimplemented => ProblemKind::NotEtcd,
        Code::DataLoss => ProblemKind::Corrupt,
        Code::PermissionDenied => ProblemKind::PermissionDenied,
        Code::Unauthenticated => ProblemKind::LoginRefused,
        _ if has(LOGIN_FAILED) => ProblemKind::LoginRefused,
        _ if has(LOGIN_REQUIRED) => ProblemKind::LoginRequired,
        _ if has(LOGIN_DISABLED) => ProblemKind::LoginUnused,
        _ if has(NO_SPACE) => ProblemKind::NoSpace,
        _ if NO_LEADER.into_iter().any(has) => ProblemKind::NoLeader,
        _ => ProblemKind::Other,
    }
}

fn advice(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::NotEtcd => "name an endpoint for clients of etcd 3.4 or later in `cluster`",
        ProblemKind::NoLeader => {
            "start a majority of the members of etcd (`etcdctl endpoint status --cluster`)"
        }
        ProblemKind::LoginRefused => "check etcd-user, and etcd-password or etcd-password-file",
        ProblemKind::LoginRequired => {
            "set etcd-user and etcd-password-file, or name a client certificate (etcd-cert) whose \
             common name is a user of etcd"
        }
        ProblemKind::LoginUnused => {
            "create users and run `etcdctl auth enable`, or remove etcd-user"
        }
        ProblemKind::PermissionDenied => {
            "give the user a role that reads and writes all keys of the cluster: `etcdctl role \
             grant-permission ROLE --prefix=true readwrite /nuthatch/NAME/`"
        }
        ProblemKind::NoSpace => {
            "compact and defragment etcd, or increase its --quota-backend-bytes; then run \
             `etcdctl alarm disarm`"
        }
        ProblemKind::Corrupt => {
            "replace the member that `etcdctl alarm list` names, and then run `etcdctl alarm \
             disarm`"
        }
        _ => "read the log of etcd",
    }
}

/// Returns whether etcd has refused a request for its token, so that a new login may help. It was
/// not executed.
pub(super) fn requires_login(status: &Status) -> bool {
    let has = |text: &str| status.message().contains(text);
    status.code() == Code::Unauthenticated
        || has(LOGIN_REQUIRED)
        || TOKEN_OUTDATED.into_iter().any(has)
}

/// Returns whether etcd has no users.
pub(super) fn is_login_disabled(status: &Status) -> bool {
    status.message().contains(LOGIN_DISABLED)
}

/// Returns whether etcd has refused a user and a password.
pub(super) fn is_login_refused(status: &Status) -> bool {
    status.source().is_none() && kind(status) == ProblemKind::LoginRefused
}

/// Returns the status of a watch that etcd has ended, from the reason that it reports.
pub(super) fn watch_end(reason: &str) -> Status {
    let code = if reason.contains(TOKEN_INVALID) {
        Code::Unauthenticated
    } else if reason.contains(PERMISSION_DENIED) {
        Code::PermissionDenied
    } else {
        Code::Unavailable
    };
    Status::new(code, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of etcd 3.4 and 3.5.
    #[test]
    fn errors_of_etcd_have_a_kind_and_advice() {
        for (code, text, kind, advised) in [
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
                ProblemKind::LoginRefused,
                "check etcd-user",
            ),
            (
                Code::Unknown,
                "auth: authentication failed, password was given for no password user",
                ProblemKind::LoginRefused,
                "check etcd-user",
            ),
            (
                Code::InvalidArgument,
                "etcdserver: user name is empty",
                ProblemKind::LoginRequired,
                "set etcd-user",
            ),
            (
                Code::FailedPrecondition,
                "etcdserver: authentication is not enabled",
                ProblemKind::LoginUnused,
                "etcdctl auth enable",
            ),
            (
                Code::PermissionDenied,
                "etcdserver: permission denied",
                ProblemKind::PermissionDenied,
                "readwrite /nuthatch/NAME/",
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                ProblemKind::NoSpace,
                "alarm disarm",
            ),
            (Code::Unavailable, "etcdserver: no leader", ProblemKind::NoLeader, "a majority"),
            (
                Code::Unavailable,
                "etcdserver: request timed out, possibly due to previous leader failure",
                ProblemKind::NoLeader,
                "a majority",
            ),
            (Code::DataLoss, "etcdserver: corrupt cluster", ProblemKind::Corrupt, "alarm list"),
            (Code::Unimplemented, "unknown service", ProblemKind::NotEtcd, "name an endpoint"),
            (
                Code::DeadlineExceeded,
                "no response within 2s",
                ProblemKind::NoResponse,
                "the network",
            ),
            (Code::InvalidArgument, "etcdserver: x", ProblemKind::Other, "the log of etcd"),
        ] {
            let Diagnosis { kind: found, advice, found: reported } =
                diagnose(&Status::new(code, text), Security::None);
            assert_eq!(found, kind, "{text}");
            assert!(advice.contains(advised) && reported.contains(text), "{advice} {reported}");
        }
    }

    #[test]
    fn a_request_is_repeated_with_a_new_token_only_if_the_token_was_refused() {
        for text in [
            "etcdserver: invalid auth token",
            "etcdserver: user name is empty",
            "auth: revision in header is old",
            "etcdserver: revision of auth store is old",
        ] {
            let code = if text.contains("token") { Code::Unauthenticated } else { Code::Unknown };
            assert!(requires_login(&Status::new(code, text)), "{text}");
        }
        for text in ["etcdserver: permission denied", "etcdserver: no leader", "timed out"] {
            assert!(!requires_login(&Status::new(Code::Unavailable, text)), "{text}");
        }
        assert!(requires_login(&watch_end("etcdserver: invalid auth token")));
        let denied = watch_end("rpc error: code = PermissionDenied desc = permission denied");
        assert_eq!(denied.code(), Code::PermissionDenied);
    }

    #[test]
    fn a_member_of_another_cluster_is_named() {
        let error = OtherCluster { expected: 0xbeef, found: 0xcafe };
        let diagnosis = diagnose(&Status::from_error(Box::new(error)), Security::None);
        assert_eq!(diagnosis.kind, ProblemKind::OtherCluster);
        assert_eq!(diagnosis.found, "expected the cluster beef of etcd, found cafe");
    }
}
