//! The context of a call: deadline, token, and the end of the server.

use crate::error::{Error, Result};
use crate::server::tokens::{Right, Tokens};
use nuthatch_listen::{DrainSignal, SecretHash};
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Code;

/// What the handler of a call needs besides the request.
#[derive(Clone)]
pub(crate) struct CallContext {
    pub(crate) deadline: Option<Instant>,
    pub(crate) drain: DrainSignal,
    pub(super) permit: Permit,
}

/// The right of a caller, as long as its token grants it.
#[derive(Clone)]
pub(super) struct Permit {
    pub(super) right: Right,
    /// The token of the caller, if the server requires one.
    pub(super) token: Option<(SecretHash, watch::Receiver<Option<Tokens>>)>,
}

impl Permit {
    /// Waits until the token is removed or grants less than before.
    async fn revoked(self) -> Error {
        let Some((hash, mut tokens)) = self.token else { return std::future::pending().await };
        loop {
            let right = tokens.borrow_and_update().as_ref().and_then(|all| all.right(&hash));
            match right {
                None => return unknown(),
                Some(right) if right < self.right => return forbidden(),
                Some(_) => {}
            }
            if tokens.changed().await.is_err() {
                // The server was dropped: tokens change no more.
                return std::future::pending().await;
            }
        }
    }
}

impl CallContext {
    /// Checks that the caller may write.
    pub(crate) fn check_write(&self) -> Result<()> {
        if self.permit.right == Right::Write { Ok(()) } else { Err(forbidden()) }
    }

    /// Waits until the call must end: its deadline has passed, its token was revoked, or the server
    /// has ended.
    pub(crate) async fn must_end(self) -> Error {
        let Self { deadline, drain, permit } = self;
        tokio::select! {
            () = until(deadline) => Error::deadline(),
            () = drain.ended() => Error::draining(),
            error = permit.revoked() => error,
        }
    }
}

/// Waits until a time, or forever if there is none.
pub(crate) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

pub(super) fn unknown() -> Error {
    let message = "expected a token that the server knows, found another one";
    Error::new(Code::Unauthenticated, "unauthenticated", message)
}

pub(super) fn forbidden() -> Error {
    let message = "expected a token that allows writing, found one for reading";
    Error::new(Code::PermissionDenied, "forbidden", message)
}
