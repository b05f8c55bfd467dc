//! A store on the other side of a socket: every call, and what happens when something goes wrong.

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
