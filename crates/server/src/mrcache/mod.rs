//! The binary protocol of mrcache: numbers are little-endian, replies come in the order of
//! requests, and storing is never answered.
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
