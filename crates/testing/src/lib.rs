//! What the tests of several crates share. A dev-dependency only: nothing here reaches a user.
//!
//! - [`tidy`] holds the rules that the whole repository keeps, as functions over text.

pub mod tidy;
