//! Timeouts of calls.

use super::Client;
use super::connect::{Calls, never_sent};
use super::resume::pause;
use crate::error::{Error, Result};
use crate::transport::LOST;
use std::future::Future;
use tokio::time::timeout;
use tonic::{Code, Status};

/// Why a stream is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The caller waits for the stream, and receives an error with code `deadline` after the
    /// timeout.
    First,
    /// A stream reconnects: an attempt without a response counts as a lost connection and is
    /// retried.
    Reconnect,
}

impl Client {
    /// Opens a stream, within the timeout of a call. Calls that the server has not received are
    /// retried.
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
            Err(error) if attempt == Attempt::Reconnect && error.code() == "deadline" => {
                Err(Error::new(Code::Unavailable, "transport", error.message()))
            }
            opened => opened,
        }
    }

    /// Waits for a response, at most for the timeout of a call. The error is the same if the server
    /// reports the deadline.
    pub(super) async fn within<T>(&self, response: impl Future<Output = Result<T>>) -> Result<T> {
        let response = match self.options.timeout {
            Some(limit) => {
                timeout(limit, response).await.unwrap_or_else(|_| Err(Error::deadline()))
            }
            None => response.await,
        };
        match response {
            Ok(response) => {
                self.server.note_response();
                Ok(response)
            }
            Err(error) if error.code() == "deadline" => Err(self.no_response()),
            Err(error) => Err(self.explained(error)),
        }
    }

    /// Returns the error for a call without a response in time.
    fn no_response(&self) -> Error {
        let limit = self.options.timeout.unwrap_or_default();
        let address = self.server.address();
        let message = format!(
            "{address}: expected a response within {limit:?}, found none; is the server stopped, \
             overloaded, or at its maximum number of connections? `timeout` (--timeout-ms) sets \
             the limit"
        );
        Error::new(Code::DeadlineExceeded, "deadline", message)
    }

    /// Adds the possible cause to an error.
    fn explained(&self, error: Error) -> Error {
        let is_plain = self.server.address().starts_with("grpc://");
        if is_plain && !self.server.has_responded() && error.message().starts_with(LOST) {
            let message = format!("{error} (if the server has TLS, use grpcs://)");
            return Error::new(Code::Unavailable, "transport", message);
        }
        error
    }
}
