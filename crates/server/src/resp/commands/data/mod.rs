//! Commands over keys and their values.

mod big_integer;
pub(crate) mod bitfield;
pub(crate) mod bits;
pub(crate) mod compressed;
pub(crate) mod expiry;
mod extended;
pub(crate) mod keys;
pub(crate) mod lcs;
pub(crate) mod lists;
pub(crate) mod multi_key;
pub(crate) mod numbers;
pub(crate) mod object;
pub(crate) mod ranges;
pub(crate) mod scan;
pub(crate) mod strings;
