//! Execution of calls from Python: threads, waiting, futures of asyncio, and what `fork` leaves.
//!
//! | module | content |
//! |---|---|
//! | `threads` | the Tokio runtime, started again in a child made by `fork` |
//! | `process` | values that belong to the process that created them |
//! | `wait` | blocking waits that handle signals |
//! | `work` | the remaining work of a call |
//! | `event_loop` | futures of asyncio that other threads settle |
//! | `call_mode` | results: values for blocking callers, futures for asynchronous ones |
//! | `undelivered` | results that must not be lost when a future is cancelled |

mod call_mode;
mod event_loop;
mod process;
mod threads;
mod undelivered;
mod wait;
mod work;

pub(crate) use call_mode::{CallMode, begin_object};
pub(crate) use event_loop::start;
pub(crate) use process::{PerProcess, ProcessBound, check_process};
pub(crate) use threads::{forked, generation, handle};
pub(crate) use undelivered::Undelivered;
pub(crate) use wait::wait;
pub(crate) use work::{Awaited, Work};
