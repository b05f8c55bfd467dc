//! Reactors: asynchronous accept, receive and send on `io_uring` or `epoll`.
//!
//! A reactor owns the memory that the kernel works with: receive buffers, and bytes that are being
//! sent, until their event.

mod backend;
mod choice;
mod epoll;
mod event;
#[cfg(test)]
mod tests;
mod uring;

pub(crate) use backend::{Backend, Reactor};
pub use choice::IoBackend;
pub(crate) use event::{Event, Number, Socket};
pub(crate) use nuthatch_uring::{BUFFER_LEN, Filled, Waker};
pub(crate) use uring::Uring;
