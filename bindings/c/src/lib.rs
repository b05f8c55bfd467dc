//! Nuthatch for C: what `include/nuthatch.h` declares. The header is made from this crate by a
//test, ! and begins with what holds of all functions: see `cbindgen.toml`. ! ! Each function has
//one unsafe block: it takes the caller's word that its pointers are what the ! header says
//([`memory::call`]). Handles are numbers that are looked up ([`handles`]), so a handle ! that was
//closed is an error, and never a crash.

#![expect(non_camel_case_types, reason = "types have the names that C knows them by")]
#![expect(clippy::missing_safety_doc, reason = "the header says once what holds of all pointers")]

mod error;
mod handles;
mod memory;
mod store;

pub use error::{nuthatch_code_name, nuthatch_error, nuthatch_version};
pub use memory::nuthatch_progress;
pub use store::*;
