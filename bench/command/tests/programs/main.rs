//! The command `nuthatch-bench`, run as its users run it, at small sizes.

mod command;
mod eviction;
mod fill;
mod help;
