//! An HTTP cache in front of an origin, so that programs which only speak HTTP profit (feature
//! `serve`).
//!
//! A request is a way to the object ([`Prefix`] and its path), conditions, and ranges; an answer
//! is a head and a body that reads the object as its client takes it. Every step is a file of its
//! own, and only `connections.rs` knows sockets.

mod answer;
mod body;
mod conditions;
mod connections;
mod figures;
mod kept;
mod options;
mod patient;
mod prefix;
mod ranges;
mod reload;
mod server;

pub use options::{CertificateCheck, Guard, Options};
pub use prefix::Prefix;
pub use reload::Reloader;
pub use server::{Figures, Server, Stopper};
