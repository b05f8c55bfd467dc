//! Rows of sources, and the entries that are made from them.

mod cell;
mod conversion;
mod mapping;
mod template;

pub(crate) use cell::{Cell, CellBuffers, Literal, Row};
pub use conversion::ColumnType;
pub(crate) use mapping::{Mapper, Mapping, Nulls, RowFault};
pub(crate) use template::KeyTemplate;
