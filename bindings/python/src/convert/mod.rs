//! Conversion of arguments and results between Python and Rust.

mod buffer;
mod bytes;
mod keyword_arguments;
mod repr;
mod times;

pub(crate) use buffer::{BufferExporter, BufferSource, write_into};
pub(crate) use bytes::{BytesArg, Value, keys_of};
pub(crate) use keyword_arguments::KeywordArguments;
pub(crate) use repr::{format_fields, repr_fields};
pub(crate) use times::{duration, expiry, unix_seconds};
