//! Blocking calls: they wait without the interpreter's lock, and handle signals.

use crate::runtime;
use pyo3::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// Interval between checks for signals of Python, such as that of Ctrl-C.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Waits for a future on this thread. If the handler of a signal raises, drops the future and
/// returns the exception.
pub(crate) fn wait<F>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F: Future<Output: Send> + Send,
{
    let handle = runtime::handle(py)?;
    let mut future = pin!(future);
    loop {
        let step = || {
            let future = future.as_mut();
            handle
                .block_on(async { tokio::time::timeout(SIGNAL_CHECK_INTERVAL, future).await.ok() })
        };
        match py.detach(step) {
            Some(output) => return Ok(output),
            None => py.check_signals()?,
        }
    }
}
