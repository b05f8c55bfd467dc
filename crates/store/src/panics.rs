//! Panics of code that the store calls on its own threads: wakers, closures and clocks of callers.
//!
//! Such a panic must not end a thread that others wait for. It is caught where it happens, and
//! becomes an error of the operation that it belongs to.

use crate::error::Error;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Calls a closure. A panic in it is an error that names the act, and has the panic's message.
pub(crate) fn caught<R>(act: &'static str, call: impl FnOnce() -> R) -> Result<R, Error> {
    // Callers use nothing of what the closure may have left half done.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| Error::Lmdb {
        act,
        message: format!("a thread of the store panicked: {}", message_of(&*panic)),
    })
}

/// Wakes a task. The waker is the caller's: if it panics, the panic's message is printed by the
/// panic hook, and the thread goes on for the other tasks.
pub(crate) fn wake(waker: Waker) {
    let _ = caught("wake", || waker.wake());
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
