//! Clients that execute arbitrary operations on connections to real servers in this process.

mod script;
mod servers;

pub use script::run;
