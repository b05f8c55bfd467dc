//! The binary protocol of mrcache. Numbers are little-endian. Replies come in the order of
//! requests. Requests that store a value have no reply, and there are no error replies.
//!
//! ```text
//! request   version (any byte)  op  key length (u16)  [value length (u32)]  key  [value]
//! reply     [00 01]  value length (u32)  value
//! ```

pub mod commands;
mod decode;
pub(crate) mod driver;
mod layout;
pub mod reply;
mod request;

pub use decode::{Decoder, Limits, Step};
pub use layout::Op;
pub use request::{Error, Request};

pub use crate::protocol::Framing;
