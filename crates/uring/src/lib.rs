//! `io_uring` for event loops: rings of sockets, the buffers that they receive into, and wakers.
//!
//! | module | content |
//! |---|---|
//! | `queue` | submissions and completions of a ring, and the memory that its operations use |
//! | `sockets` | a ring of sockets and files: accepting, receiving, sending, reading |
//! | `files` | reads of files, with buffers for direct I/O |
//! | `buffers` | receive buffers: a ring of them for the kernel, and a pool for other backends |
//! | `waker` | ends the wait of a ring from another thread |
//! | `options` | the size of a ring, and how it waits |
//! | `user_data` | the numbers by which completions name their operations |
//!
//! An event loop starts operations on a [`SocketRing`], submits them and waits with
//! [`wait`](SocketRing::wait), and takes what has completed with
//! [`take_completions`](SocketRing::take_completions). Which operations it starts, and when, is its
//! own policy. All functions are safe: a ring owns the memory that the kernel reads and writes, and
//! keeps it until the operation has completed.
//!
//! A ring requires Linux 6.1. It belongs to the thread that created it: the kernel refuses
//! operations of other threads.

mod buffers;
mod files;
mod options;
mod queue;
mod sockets;
mod user_data;
mod waker;

pub use buffers::{BUFFER_LEN, BufferPool, Filled};
pub use files::ReadBuffer;
pub use options::RingOptions;
pub use sockets::{Completion, Outbox, OwnedSends, SendMemory, SocketRing, StableBytes};
pub use waker::Waker;
