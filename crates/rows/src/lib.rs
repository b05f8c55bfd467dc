//! Rows of tables, and the entries of snapshots that are made of them.
//!
//! A [`Mapping`] says how rows with certain columns become entries: a [`KeyTemplate`] makes their
//! keys, and columns have their values, converted to a [`ColumnType`] if one is named. A [`Mapper`]
//! passes the entries of each [`Row`] to a sink. [`arrow`] has the rows of Arrow's record batches.
//!
//! `docs/populate.md` describes templates and types for users.

pub mod arrow;
mod cell;
mod conversion;
mod mapping;
mod template;

pub use cell::{Cell, CellBuffers, Literal, Row};
pub use conversion::ColumnType;
pub use mapping::{Mapper, Mapping, Nulls, RowFault};
pub use template::KeyTemplate;
