//! Receive buffers.

mod filled;
mod memory;
mod pool;
mod provided;

pub use filled::{BUFFER_LEN, Filled};
pub use pool::BufferPool;
pub(crate) use provided::ProvidedBuffers;
