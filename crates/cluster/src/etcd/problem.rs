//! What prevents etcd from executing the requests of a node, as an operator sees it.

use std::borrow::Cow;
use std::fmt;

/// A kind of request to etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The login with a user and a password.
    Login,
    /// The grant of a lease.
    Grant,
    /// A keep-alive of the lease.
    KeepAlive,
    /// The revocation of the lease.
    Revoke,
    /// A request for the remaining time of the lease.
    TimeToLive,
    /// A read of keys.
    Read,
    /// A transaction.
    Commit,
    /// A watch of all keys.
    Watch,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Login => "login",
            Self::Grant => "grant of a lease",
            Self::KeepAlive => "keep-alive of the lease",
            Self::Revoke => "revocation of the lease",
            Self::TimeToLive => "remaining time of the lease",
            Self::Read => "read of the cluster's keys",
            Self::Commit => "transaction with the cluster's keys",
            Self::Watch => "watch of the cluster's keys",
        })
    }
}

/// Why etcd does not execute requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// No connection to the endpoint can be established.
    Unreachable,
    /// The connection was lost.
    Disconnected,
    /// The endpoint does not respond in time.
    NoResponse,
    /// The TLS handshake fails.
    Tls,
    /// The endpoint is no server of etcd.
    NotEtcd,
    /// The endpoint belongs to another cluster of etcd than before.
    OtherCluster,
    /// A majority of the members of etcd is missing.
    NoLeader,
    /// etcd does not accept the user, the password or the token.
    LoginRefused,
    /// etcd requires a login, and there is none.
    LoginRequired,
    /// etcd has no users, so that all clients may change its keys.
    LoginUnused,
    /// The user has no permission for the keys.
    PermissionDenied,
    /// The database of etcd has reached its limit.
    NoSpace,
    /// etcd has found that its members have different data.
    Corrupt,
    /// Any other error.
    Other,
}

impl ProblemKind {
    /// Returns a sentence without a period: what happened.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::Unreachable => "etcd cannot be reached",
            Self::Disconnected => "the connection to etcd was lost",
            Self::NoResponse => "etcd does not respond",
            Self::Tls => "the TLS handshake with etcd fails",
            Self::NotEtcd => "the endpoint is no server of etcd",
            Self::OtherCluster => "the endpoint belongs to another cluster of etcd",
            Self::NoLeader => "etcd has no leader",
            Self::LoginRefused => "etcd refuses the login",
            Self::LoginRequired => "etcd requires a login",
            Self::LoginUnused => "etcd has no users, so all clients may change the cluster",
            Self::PermissionDenied => "etcd denies access to the keys of the cluster",
            Self::NoSpace => "the database of etcd is full",
            Self::Corrupt => "etcd has found corrupt data",
            Self::Other => "etcd refuses a request",
        }
    }

    /// Returns whether the problem ends when the endpoint executes a request of any kind. Others
    /// end when any endpoint executes a request of the same kind: without a login or a permission,
    /// a lease can still be kept alive.
    pub(super) fn is_of_endpoint(self) -> bool {
        matches!(
            self,
            Self::Unreachable
                | Self::Disconnected
                | Self::NoResponse
                | Self::Tls
                | Self::NotEtcd
                | Self::OtherCluster
                | Self::NoLeader
        )
    }

    /// Returns whether no etcd has executed or refused the request, as far as the node knows.
    pub(super) fn is_away(self) -> bool {
        self.is_of_endpoint() && self != Self::OtherCluster
    }

    /// Returns whether another endpoint would refuse the request, too.
    pub(super) fn is_of_all_endpoints(self) -> bool {
        matches!(
            self,
            Self::LoginRefused
                | Self::LoginRequired
                | Self::LoginUnused
                | Self::PermissionDenied
                | Self::NoSpace
        )
    }
}

/// Why a request failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Diagnosis {
    pub(super) kind: ProblemKind,
    pub(super) found: String,
    pub(super) advice: Cow<'static, str>,
}

impl Diagnosis {
    pub(super) fn new(
        kind: ProblemKind,
        found: impl fmt::Display,
        advice: impl Into<Cow<'static, str>>,
    ) -> Self {
        // Texts of other programs may have several lines.
        let found = found.to_string().replace(['\r', '\n'], " ");
        Self { kind, found, advice: advice.into() }
    }
}

/// A request that etcd did not execute, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdProblem {
    /// Why.
    pub kind: ProblemKind,
    /// The endpoint, as `host:port`.
    pub endpoint: String,
    /// The request.
    pub request: Operation,
    /// What etcd or the connection reported, without secrets.
    pub found: String,
    /// What an operator should do.
    pub advice: Cow<'static, str>,
}

/// The begin or the end of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdReport {
    /// A problem begins. It is not reported again before it has ended.
    Began(EtcdProblem),
    /// Requests are executed again.
    Ended(EtcdProblem),
}
