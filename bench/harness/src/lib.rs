//! Nuthatch beside other key-value systems: the same work for all, in one process, round by round.
//!
//! What is measured and how to read it: `bench/README.md`. A system takes part by implementing
//! [`System`], and [`Reader`] for its lookups; [`run_with`] lets any number of them compete.

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

/// The result of this crate's operations: each system brings errors of its own.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
