//! Nuthatch for C: the functions that `include/nuthatch.h` declares.
//!
//! A test generates the header from this crate. The header begins with rules for all functions: see
//! `cbindgen.toml`.
//!
//! The body of each function that can fail is one macro, `export_body` in `memory.rs`: it catches
//! panics, writes the error, and has the unsafe block that relies on the caller to pass pointers as
//! the header requires. Handles are numbers that are looked up ([`handles`]), so a closed handle is
//! an error and never a crash.

#![expect(non_camel_case_types, reason = "types have their names in C")]
#![expect(clippy::missing_safety_doc, reason = "the header states the rules for all pointers once")]
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the store is for Linux"))]

mod error;
mod handles;
mod memory;
mod snapshot;
// The store needs locks and system calls of Linux.
#[cfg(target_os = "linux")]
mod store;

pub use error::*;
pub use memory::{nuthatch_progress, nuthatch_snapshot_bytes};
pub use snapshot::*;
#[cfg(target_os = "linux")]
pub use store::*;
