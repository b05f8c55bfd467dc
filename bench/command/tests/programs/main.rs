//! Tests that run the `nuthatch-bench` program with small settings.

mod command;
mod eviction;
mod fill;
mod help;
mod soak;
