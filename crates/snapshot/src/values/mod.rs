//! Typed values, borrowed or owned, and their stored form. Imports no other module of the crate.

pub(crate) mod cast;
mod owned;
mod string_list;
mod value;

pub use owned::{CowStringList, CowValue, OwnedStringList, OwnedValue};
pub use string_list::{StringList, StringListBuf};
pub use value::{Value, ValueType};
