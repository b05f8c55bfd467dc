//! Reactors: asynchronous accept, receive and send on `io_uring` or `epoll`.
//!
//! A reactor owns the memory that the kernel works with: receive buffers, and bytes that are being
//! sent, until their event.

mod backend;
mod buffers;
mod choice;
mod epoll;
mod event;
mod memory;
mod pool;
#[cfg(test)]
mod tests;
mod uring;
mod waker;

pub(crate) use backend::{Backend, Reactor};
pub use choice::IoBackend;
pub(crate) use event::{BUFFER_LEN, Event, Filled, Number, Socket};
pub(crate) use waker::Waker;
