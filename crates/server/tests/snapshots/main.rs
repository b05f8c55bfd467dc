//! Tests snapshots whose keys are served beside those of the cache, over the sockets of a server.

mod damage;
mod harness;
mod iteration;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../served/mod.rs"]
mod served;
mod swaps;
mod transactions;
mod values;
mod writes;
