//! How long a client waits for a server that does not answer.

use super::Client;
use super::connect::{Calls, never_sent};
use super::resume::pause;
use crate::error::{Error, Result};
use crate::transport::LOST;
use std::future::Future;
use tokio::time::timeout;
use tonic::{Code, Status};

/// How a call is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The caller waits: it gets an error with code `deadline`.
    First,
    /// A stream reconnects: an attempt without an answer is a lost connection, and is retried.
    Again,
}

impl Client {
    /// Begins a stream, and waits for that for at most the timeout of a call. What the server has
    /// not seen is retried.
    pub(super) async fn begin<T, F: Future<Output = Result<T, Status>>>(
        &self,
        attempt: Attempt,
        open: impl Fn(Calls) -> F,
    ) -> Result<T> {
        let opened = self.within(async {
            let mut failures = 0;
            loop {
                match open(self.calls.clone()).await {
                    Err(status) if failures < self.options.retries && never_sent(&status) => {
                        failures += 1;
                        tokio::time::sleep(pause(failures)).await;
                    }
                    opened => return Ok(opened?),
                }
            }
        });
        match opened.await {
            Err(error) if attempt == Attempt::Again && error.code() == "deadline" => {
                Err(Error::new(Code::Unavailable, "transport", error.message()))
            }
            opened => opened,
        }
    }

    /// Waits for an answer, for at most the timeout of a call. A server that gave up for the same
    /// reason makes no difference.
    pub(super) async fn within<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        let answer = match self.options.timeout {
            Some(limit) => timeout(limit, answer).await.unwrap_or_else(|_| Err(Error::deadline())),
            None => answer.await,
        };
        match answer {
            Ok(answer) => {
                self.server.note_answer();
                Ok(answer)
            }
            Err(error) if error.code() == "deadline" => Err(self.no_answer()),
            Err(error) => Err(self.explained(error)),
        }
    }

    /// Returns the error for a call without an answer in time.
    fn no_answer(&self) -> Error {
        let limit = self.options.timeout.unwrap_or_default();
        let address = self.server.address();
        let message = format!(
            "{address}: expected an answer within {limit:?}, found none; is the server stopped, \
             overloaded, or at its maximum number of connections? `timeout` (--timeout-ms) sets \
             the limit"
        );
        Error::new(Code::DeadlineExceeded, "deadline", message)
    }

    /// Returns an error with what may be its cause.
    fn explained(&self, error: Error) -> Error {
        let is_plain = self.server.address().starts_with("grpc://");
        if is_plain && !self.server.has_answered() && error.message().starts_with(LOST) {
            let message = format!("{error} (if the server has TLS, use grpcs://)");
            return Error::new(Code::Unavailable, "transport", message);
        }
        error
    }
}
