//! Shared test code of several crates, used only as a dev-dependency.
//!
//! - [`tidy`] contains the rules for the source code of the repository, as functions over text.
//! - [`azurite`] and [`google`] start servers with the protocols of Azure Blob Storage and Google
//!   Cloud Storage.
//! - [`database`] starts servers of PostgreSQL and MariaDB.
//! - [`moto`] starts a server with the protocol of S3.
//! - [`page`] reads the tables of documentation pages, which tests compare with the code.
//! - [`process`] stops child processes and lets them continue.
//! - [`random`] generates pseudo-random numbers and bytes that are the same in each run.

pub mod azurite;
pub mod database;
pub mod google;
pub mod moto;
pub mod page;
pub mod process;
pub mod random;
pub mod tidy;
