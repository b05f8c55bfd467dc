//! What the tests of several crates share. A dev-dependency only: nothing here reaches a user.
//!
//! - [`tidy`] has the house rules of the repository, as functions over text.
//! - [`page`] reads the tables of documentation pages, which tests compare with the code.
//! - [`random`] has pseudo-random numbers that are the same in each run.

pub mod page;
pub mod random;
pub mod tidy;
