//! The chunk server: an HTTP cache in front of an origin, for programs that only speak HTTP.
//!
//! A request is the address of an object ([`Prefix`] and the path of the request), conditions, and
//! ranges. A response is a head and a body, which reads the object as fast as the client receives
//! it.
//!
//! Modules import in one direction, down this list:
//!
//! | module | content |
//! |---|---|
//! | `server` | [`Server`]: starts, stops, exports metrics |
//! | `connections` | accepts connections and serves HTTP on each |
//! | `response` | responses to requests: conditions, ranges, bodies, `Cache-Status` |
//! | `site` | what all requests share |
//! | `credentials`, `options`, `metrics`, `write_timeout` | used by all of these |
//!
//! [`Prefix`]: nuthatch_origins::Prefix

mod connections;
mod credentials;
mod metrics;
mod options;
mod response;
mod server;
mod site;
mod write_timeout;

pub use credentials::Reloader;
pub use nuthatch_listen::Stopper;
pub use options::{CertificateCheck, Options, TokenCheck};
pub use server::{Metrics, Server};
