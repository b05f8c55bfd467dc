//! The chunk server: an HTTP cache in front of an origin, for programs that only speak HTTP.
//!
//! A request is the address of an object ([`Prefix`] and the path of the request), conditions, and
//! ranges. A response is a head and a body, which reads the object as fast as the client receives
//! it. Each step has a file of its own, and only `connections.rs` knows sockets.
//!
//! [`Prefix`]: nuthatch_origins::Prefix

mod answer;
mod body;
mod conditions;
mod connections;
mod figures;
mod kept;
mod options;
mod patient;
mod ranges;
mod reload;
mod server;

pub use nuthatch_listen::Stopper;
pub use options::{CertificateCheck, Guard, Options};
pub use reload::Reloader;
pub use server::{Figures, Server};
