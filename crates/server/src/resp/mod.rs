//! RESP, the protocol of Redis, versions 2 and 3.
//!
//! A [`Decoder`] turns bytes into requests: it finds their arguments where they lie and copies
//! nothing. A [`Reply`] turns answers into bytes.
//!
//! What Redis answers to a request, this decoder answers with the same text. It differs where
//! Redis reads on over bytes that can only be a mistake, or does not answer at all:
//!
//! - The bytes behind a line and behind an argument must be CR LF. Redis skips two bytes unseen,
//!   and so stores a value cut short when its length was announced wrong.
//! - An argument that does not begin with `$` is refused at once, not when its line has ended.
//! - A line over the limit is refused however it arrived. Redis takes one that comes in one piece.
//! - NUL is a byte like any other. In Redis it hides the end of the line behind it.
//! - More arguments than [`Limits::args`] are refused before they come. Redis 7 takes 2^31 of them.

pub mod commands;
mod decode;
mod double;
pub(crate) mod driver;
mod error;
mod inline;
mod limits;
mod number;
mod reply;
mod request;

pub use decode::Decoder;
pub use double::double_text;
pub use error::ProtocolError;
pub use inline::Inline;
pub use limits::Limits;
pub use reply::Reply;
pub use request::Step;

pub use crate::number::integer;
pub use crate::span::Span;
pub use crate::state::{ValueLimit, Version};
