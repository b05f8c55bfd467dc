//! The text protocol of poor-man's-cache: messages that end with 0x1F, without lengths.
//!
//! A [`Decoder`] finds `GET key`, `SET key value` and `DEL key`. The same connection may send RESP,
//! message by message: those begin with `*`, and the caller passes them to a
//! [`resp::Decoder`](crate::resp::Decoder). A [`Reply`] encodes replies.

pub mod commands;
mod decode;
pub(crate) mod driver;
mod reply;

pub use crate::span::Span;
pub use decode::{Decoder, Fault, Request, Step, TooLong};
pub use reply::Reply;

/// The byte that ends every message and reply.
pub const SEPARATOR: u8 = 0x1F;
