//! Limits of requests.

use super::{ProtocolError, ValueLimit};

/// Maximum arguments of a request before login, as in Redis.
const ARGS_BEFORE_AUTH: u32 = 10;
/// Maximum bytes of a request before login, and of one of its lines. This suffices for `AUTH` and
/// `HELLO` with a user name and a password. Each client that cannot log in may use this much
/// memory.
const REQUEST_LEN_BEFORE_AUTH: u32 = 8 << 10;
const LINE_LEN_BEFORE_AUTH: u32 = 4 << 10;

/// Limits of a request. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of an argument.
    pub bulk_len: u32,
    /// What sets that limit, for the text of errors.
    pub bulk_limit: ValueLimit,
    /// Maximum number of arguments.
    pub args: u32,
    /// Maximum length of a line: an inline request, or the line of a count or a length.
    pub line_len: u32,
    /// Maximum length of a request with its framing.
    pub request_len: u32,
    /// Whether the client has logged in, or need not. If not, arguments are limited to what `AUTH`
    /// and `HELLO` need.
    pub authenticated: bool,
}

impl Default for Limits {
    /// Returns the defaults of Redis, for a client that need not log in.
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
    /// Returns the limits for a client that has not logged in.
    #[must_use]
    pub fn before_auth(self) -> Self {
        Self {
            authenticated: false,
            line_len: self.line_len.min(LINE_LEN_BEFORE_AUTH),
            request_len: self.request_len.min(REQUEST_LEN_BEFORE_AUTH),
            ..self
        }
    }

    /// Returns the maximum number of arguments for this client.
    pub(super) fn max_args(&self) -> u32 {
        if self.authenticated { self.args } else { self.args.min(ARGS_BEFORE_AUTH) }
    }

    /// Returns the maximum length of an argument for this client.
    pub(super) fn max_bulk_len(&self) -> u32 {
        if self.authenticated { self.bulk_len } else { self.bulk_len.min(self.request_len) }
    }

    /// Returns the error for a number of arguments that exceeds [`max_args`](Self::max_args).
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
