//! Tests of server and client over sockets: all calls, and errors.

mod batches;
mod calls;
mod connections;
mod damage;
mod deadlines;
mod draining;
mod held;
mod losses;
mod reloads;
mod scans;
mod security;
mod served;
mod txns;
mod waits;
mod watches;
