//! Handling of panics in code of callers that threads of the store run: wakers, closures and
//! clocks.
//!
//! Such a panic must not end a thread that others wait for. It is caught, and becomes an error of
//! the operation.

use crate::error::Error;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Calls a closure. A panic becomes an error with the operation and the panic's message.
pub(crate) fn caught<R>(operation: &'static str, call: impl FnOnce() -> R) -> Result<R, Error> {
    // Callers discard what the closure may have left inconsistent.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| Error::Lmdb {
        operation,
        message: format!("a thread of the store panicked: {}", message_of(&*panic)),
    })
}

/// Wakes a task. If the caller's waker panics, the panic hook prints the message, and the thread
/// continues with the other tasks.
pub(crate) fn wake(waker: Waker) {
    let _ = caught("wake", || waker.wake());
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
