//! RESP, the protocol of Redis, versions 2 and 3.
//!
//! A [`Decoder`] finds the arguments of requests in received bytes, without copying them. A
//! [`Reply`] encodes replies. [`commands`] executes requests.
//!
//! Errors have the text of Redis. The decoder refuses some bytes that Redis accepts although they
//! can only be a mistake:
//!
//! - A line and an argument must be followed by CR LF. Redis skips two bytes without checking them,
//!   and stores a truncated value if the announced length is wrong.
//! - An argument that does not begin with `$` is refused at once, not at the end of its line.
//! - A line that exceeds the limit is refused however it arrives. Redis accepts one that arrives at
//!   once.
//! - NUL is an ordinary byte. Redis does not find the end of a line after a NUL.
//! - More arguments than [`Limits::args`] are refused before they arrive. Redis 7 accepts 2^31.

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
