//! Text with rows, independent of its format.

mod cursor;
mod describe;

pub(crate) use cursor::TextCursor;
pub(crate) use describe::{describe, quote};
