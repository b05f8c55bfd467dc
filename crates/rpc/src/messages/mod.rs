//! The messages of `store.proto`, and their conversion to types of the store.

pub(crate) mod convert;
pub(crate) mod proto;
pub(crate) mod rows;
