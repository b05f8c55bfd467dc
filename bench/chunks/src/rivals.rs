//! The other systems, each set up as its own documentation has it.

pub mod foyer;
pub mod sccache;
pub mod xet;
