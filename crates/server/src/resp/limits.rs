//! How much one request may ask for.

use super::{ProtocolError, ValueLimit};

/// Most arguments of a request before the client has authenticated, as in Redis.
const ARGS_BEFORE_AUTH: u32 = 10;
/// Maximum bytes of a request before the client has authenticated, and of one line of it: `AUTH`
/// and `HELLO` need a name and a password. Clients that cannot log in can hold this much each.
const REQUEST_LEN_BEFORE_AUTH: u32 = 8 << 10;
const LINE_LEN_BEFORE_AUTH: u32 = 4 << 10;

/// The most that one request may hold. All lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest argument.
    pub bulk_len: u32,
    /// What sets that length, for the text of errors.
    pub bulk_limit: ValueLimit,
    /// The most arguments.
    pub args: u32,
    /// The longest line: an inline request, or the line that announces a count or a length.
    pub line_len: u32,
    /// The longest request, with all that frames it.
    pub request_len: u32,
    /// Whether the client has authenticated, or need not. Others get what `AUTH` and `HELLO`
    /// need and no more.
    pub authenticated: bool,
}

impl Default for Limits {
    /// As Redis is configured, for a client that need not authenticate.
    fn default() -> Self {
        Self {
            bulk_len: 512 << 20,
            bulk_limit: ValueLimit::Setting,
            args: 1 << 20,
            line_len: 64 << 10,
            request_len: 1 << 30,
            authenticated: true,
        }
    }
}

impl Limits {
    /// Returns the limits for a client that has not authenticated yet.
    #[must_use]
    pub fn before_auth(self) -> Self {
        Self {
            authenticated: false,
            line_len: self.line_len.min(LINE_LEN_BEFORE_AUTH),
            request_len: self.request_len.min(REQUEST_LEN_BEFORE_AUTH),
            ..self
        }
    }

    /// The most arguments for this client.
    pub(super) fn most_args(&self) -> u32 {
        if self.authenticated { self.args } else { self.args.min(ARGS_BEFORE_AUTH) }
    }

    /// The longest argument for this client.
    pub(super) fn longest_bulk(&self) -> u32 {
        if self.authenticated { self.bulk_len } else { self.bulk_len.min(self.request_len) }
    }

    /// What is wrong with so many arguments, which are more than [`most_args`](Self::most_args).
    #[cold]
    pub(super) fn too_many(&self, args: u32) -> ProtocolError {
        if args > self.args {
            ProtocolError::InvalidMultibulkLength
        } else {
            ProtocolError::UnauthenticatedMultibulkLength
        }
    }

    /// Returns the error for an argument of this length, which exceeds one of the limits.
    #[cold]
    pub(super) fn too_long(&self, bulk_len: u64) -> ProtocolError {
        if bulk_len > u64::from(self.bulk_len) {
            let Self { bulk_len: max, bulk_limit: limit, .. } = *self;
            ProtocolError::BulkTooLong { len: bulk_len, max, limit }
        } else if !self.authenticated {
            ProtocolError::UnauthenticatedBulkLength
        } else {
            ProtocolError::TooBigRequest
        }
    }
}
