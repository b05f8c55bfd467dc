//! Tests the data commands: against a table of replies, against a real Redis, against a model, and
//! from several threads at once.

#[path = "../case/mod.rs"]
#[expect(dead_code, reason = "other files of vectors need more of it")]
mod case;
mod compressed;
mod differential;
mod engine;
mod generate;
mod model;
mod redis;
mod scans;
mod threads;
mod vectors;
