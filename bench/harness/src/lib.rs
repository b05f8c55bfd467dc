//! Benchmarks Nuthatch against other key-value systems: the same workloads for all, in one process,
//! in alternating rounds.
//!
//! `bench/README.md` describes what is measured and how to read it. A system implements [`System`],
//! and [`Reader`] for its lookups. [`run_with`] compares any number of systems.

#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "the library of a benchmark program, which prints its errors"
)]

mod draws;
mod entrant;
mod folder;
mod hash_map;
mod lookups;
pub mod loops;
mod nuthatch;
mod race;
mod random;
mod report;
mod resident;
mod rows;
mod run;
pub mod store;
mod system;
mod work;

pub use draws::{Distribution, Draws};
pub use entrant::{Entrant, Sample, entrant};
pub use folder::Folder;
pub use hash_map::HashMap;
pub use lookups::{Keys, Lookups};
pub use nuthatch::Nuthatch;
pub use random::Random;
pub use resident::{peak_bytes, resident_bytes};
pub use rows::{Rows, Texts, Value};
pub use run::{Entrants, Options, own_systems, run, run_with};
pub use system::{BATCH, Built, Reader, System, Tally, first_byte, first_float};
pub use work::Work;

/// The result of this crate's operations. Each system has its own error type.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
