//! The text protocol of poor-man's-cache: messages that end with 0x1F, and no lengths.
//!
//! A [`Decoder`] finds `GET key`, `SET key value` and `DEL key` in what a connection receives. The
//! same connection may send RESP, message by message: those begin with `*`, and the caller gives
//! them to a [`resp::Decoder`](crate::resp::Decoder). A [`Reply`] turns answers into bytes.

pub mod commands;
mod decode;
pub(crate) mod driver;
mod reply;

pub use crate::span::Span;
pub use decode::{Decoder, Fault, Request, Step, TooLong};
pub use reply::Reply;

/// Ends every message and every reply.
pub const SEPARATOR: u8 = 0x1F;
