//! Error replies of memcached.

use std::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])+ $name:ident = $text:literal,)+) => {
        /// Why a request is refused. The text is the reply.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Error {
            $($(#[$doc])+ $name,)+
        }

        impl Error {
            /// All errors.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the line without its end.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

errors! {
    /// The command is unknown, or has too few or too many words.
    UnknownCommand = "ERROR",
    /// A key is too long or contains control characters, or a number is invalid.
    BadFormat = "CLIENT_ERROR bad command line format",
    /// A `delete` has unexpected words after its key.
    BadDelete = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
    /// The client has not logged in.
    LogInFirst = "CLIENT_ERROR unauthenticated",
    /// The user name or the password is wrong.
    LogInFailed = "CLIENT_ERROR authentication failure",
    /// The user may not execute the command.
    DeniedCommand = "CLIENT_ERROR this user has no permissions to run this command",
    /// The user may not use the key.
    DeniedKey = "CLIENT_ERROR this user has no permissions to access this key",
    /// A data block does not end where its line announced.
    BadChunk = "CLIENT_ERROR bad data chunk",
    /// A time is not a number.
    BadExptime = "CLIENT_ERROR invalid exptime argument",
    /// The delta of `incr` or `decr` is not a number.
    BadDelta = "CLIENT_ERROR invalid numeric delta argument",
    /// A line is too long. It is unknown where the next request begins.
    LineTooLong = "CLIENT_ERROR line too long",
    /// A meta flag is unknown.
    InvalidFlag = "CLIENT_ERROR invalid flag",
    /// A meta flag is repeated.
    DuplicateFlag = "CLIENT_ERROR duplicate flag",
    /// The token of a meta flag is not a number.
    BadToken = "CLIENT_ERROR bad token in command line format",
    /// An opaque token is longer than the maximum.
    OpaqueTooLong = "CLIENT_ERROR opaque token too long",
    /// A mode is not a single letter.
    BadModeLen = "CLIENT_ERROR incorrect length for M token",
    /// `ms` has no such mode.
    BadSetMode = "CLIENT_ERROR invalid mode for ms M token",
    /// `ma` has no such mode.
    BadArithMode = "CLIENT_ERROR invalid mode for ma M token",
    /// The initial value for `ma` is not a number.
    BadInitial = "CLIENT_ERROR invalid numeric initial value",
    /// The delta for `ma` is not a number.
    BadMetaDelta = "CLIENT_ERROR invalid numeric delta value",
    /// A key with the base64 flag is not base64.
    BadBase64 = "CLIENT_ERROR error decoding key",
    /// `incr`, `decr` or `ma` found a value that is not a number.
    NotNumeric = "CLIENT_ERROR cannot increment or decrement non-numeric value",
    /// The operator has disabled `flush_all`.
    FlushRefused = "CLIENT_ERROR flush_all not allowed",
    /// Clients may not use `shutdown`.
    ShutdownRefused = "ERROR: shutdown not enabled",
    /// A data block exceeds the limit.
    TooLarge = "SERVER_ERROR object too large for cache",
    /// The values of a reply exceed the available memory.
    ReplyTooLong = "SERVER_ERROR out of memory writing get response",
    /// The file of a snapshot is damaged at this key.
    SnapshotDamaged = "SERVER_ERROR the file of the snapshot is damaged at this key",
    /// There is no memory for an item.
    OutOfMemory = "SERVER_ERROR out of memory storing object",
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Error {}
