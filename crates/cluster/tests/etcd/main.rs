//! The client of etcd and members of a cluster, with servers of etcd that the tests start and kill.

mod certificates;
mod client;
#[path = "../members/history.rs"]
mod history;
mod kills;
mod problems;
mod security;
mod server;

use nuthatch_cluster::keys::Keys;

/// Returns the keys of the cluster of the tests.
fn keys() -> Keys {
    Keys::new("test").expect("a name")
}
