//! The bytes of a file, as `docs/formats/snapshot.md` specifies them: offsets, hashes, and how each
//! structure is decoded, validated and encoded. Does no input or output.

pub(crate) mod directory;
pub(crate) mod hash;
pub(crate) mod header;
pub mod layout;
pub(crate) mod line;
pub(crate) mod manifest;
pub(crate) mod metadata;
pub(crate) mod raw_header;
pub(crate) mod record;
pub(crate) mod totals;
