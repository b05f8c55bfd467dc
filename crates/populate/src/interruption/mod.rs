//! The interruption of a job by a signal, and waits that it ends.

mod file;

pub(crate) use file::InterruptibleFile;

use crate::error::{Error, Result};
use futures_util::FutureExt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two looks at the flag of interruption.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time until a connection can be used.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The flag that a signal sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption(pub(crate) Arc<AtomicBool>);

impl Interruption {
    /// Returns whether the job is interrupted.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if the job is interrupted.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupted`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Fails if the job is interrupted, in a read.
    ///
    /// # Errors
    ///
    /// Returns an error that the caller of [`run`](crate::run) does not see: a run that was
    /// interrupted returns [`Error::Interrupted`], whatever failed then.
    pub(crate) fn check_io(&self) -> io::Result<()> {
        // `ErrorKind::Interrupted` would be tried again.
        if self.is_set() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }

    /// Waits for a result.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupted`] soon after the job is interrupted.
    pub(crate) async fn or<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        let mut future = pin!(future);
        // The usual case while rows arrive: no timer is needed.
        if let Some(result) = future.as_mut().now_or_never() {
            return Ok(result);
        }
        loop {
            if self.is_set() {
                return Err(Error::Interrupted);
            }
            if let Ok(result) = tokio::time::timeout(LOOK_INTERVAL, future.as_mut()).await {
                return Ok(result);
            }
        }
    }

    /// Waits until a connection can be used. `name` is the source.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupted`], or a transient [`Error::Source`] if the server does not
    /// answer for 30 seconds.
    pub(crate) async fn or_no_answer<T>(
        &self,
        name: &str,
        connecting: impl Future<Output = T>,
    ) -> Result<T> {
        let answered = self.or(tokio::time::timeout(CONNECT_TIMEOUT, connecting)).await?;
        answered.map_err(|_| Error::Source {
            source: name.to_owned(),
            message: format!("connect: no answer in {} s", CONNECT_TIMEOUT.as_secs()),
            is_transient: true,
        })
    }
}
