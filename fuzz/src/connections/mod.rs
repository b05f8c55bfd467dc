//! Clients that do anything in any order, on connections to real servers in this process.

mod script;
mod servers;

pub use script::run;
