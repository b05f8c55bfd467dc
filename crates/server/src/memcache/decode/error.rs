//! What a client is told when a request is refused.

use std::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])+ $name:ident = $text:literal,)+) => {
        /// Why a request is refused. The text is the line that the client gets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Error {
            $($(#[$doc])+ $name,)+
        }

        impl Error {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The line, without its end.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

errors! {
    /// A command that there is not, or with fewer or more words than it takes.
    UnknownCommand = "ERROR",
    /// A key that is too long or not plain, or a number that is none.
    BadFormat = "CLIENT_ERROR bad command line format",
    /// Words after the key of a `delete` that it does not take.
    BadDelete = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
    /// A request before the client has logged in.
    LogInFirst = "CLIENT_ERROR unauthenticated",
    /// A name or a password that is wrong.
    LogInFailed = "CLIENT_ERROR authentication failure",
    /// A command that the user may not run.
    DeniedCommand = "CLIENT_ERROR this user has no permissions to run this command",
    /// A key that the user may not use.
    DeniedKey = "CLIENT_ERROR this user has no permissions to access this key",
    /// A data block that does not end where its line says.
    BadChunk = "CLIENT_ERROR bad data chunk",
    /// A time that is no number.
    BadExptime = "CLIENT_ERROR invalid exptime argument",
    /// An amount for `incr` or `decr` that is no number.
    BadDelta = "CLIENT_ERROR invalid numeric delta argument",
    /// A line without end; what follows it cannot be told from it.
    LineTooLong = "CLIENT_ERROR line too long",
    /// A meta flag that there is not.
    InvalidFlag = "CLIENT_ERROR invalid flag",
    /// A meta flag a second time.
    DuplicateFlag = "CLIENT_ERROR duplicate flag",
    /// A meta flag with a token that is no number.
    BadToken = "CLIENT_ERROR bad token in command line format",
    /// An opaque token of more bytes than are given back.
    OpaqueTooLong = "CLIENT_ERROR opaque token too long",
    /// A mode that is not one letter.
    BadModeLen = "CLIENT_ERROR incorrect length for M token",
    /// A mode that `ms` does not have.
    BadSetMode = "CLIENT_ERROR invalid mode for ms M token",
    /// A mode that `ma` does not have.
    BadArithMode = "CLIENT_ERROR invalid mode for ma M token",
    /// A first value for `ma` that is no number.
    BadInitial = "CLIENT_ERROR invalid numeric initial value",
    /// An amount for `ma` that is no number.
    BadMetaDelta = "CLIENT_ERROR invalid numeric delta value",
    /// A key with the flag for base64 that is none.
    BadBase64 = "CLIENT_ERROR error decoding key",
    /// A stored value that `incr`, `decr` or `ma` cannot count with.
    NotNumeric = "CLIENT_ERROR cannot increment or decrement non-numeric value",
    /// `flush_all` where the operator does not allow it.
    FlushRefused = "CLIENT_ERROR flush_all not allowed",
    /// `shutdown`, which clients may not ask for.
    ShutdownRefused = "ERROR: shutdown not enabled",
    /// A data block over the limit.
    TooLarge = "SERVER_ERROR object too large for cache",
    /// Values to get that are more than there is memory for.
    AnswerTooLong = "SERVER_ERROR out of memory writing get response",
    /// No room could be made for an object.
    OutOfMemory = "SERVER_ERROR out of memory storing object",
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Error {}
