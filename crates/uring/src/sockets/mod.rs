//! A ring of sockets.

mod completion;
mod ring;
mod sends;

pub use completion::Completion;
pub use ring::SocketRing;
pub use sends::{Outbox, OwnedSends, SendMemory, StableBytes};
