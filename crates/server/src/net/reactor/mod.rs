//! Sockets, and what happens on them: connections come, bytes come, bytes have gone.
//!
//! A reactor owns whatever memory the kernel is working with: buffers that are received into, and
//! those that are being sent, until they come back with an event.

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
