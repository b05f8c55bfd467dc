//! The client of etcd and members of a cluster, with servers of etcd that the tests start and kill.

mod client;
#[path = "../members/history.rs"]
mod history;
mod kills;
mod server;

use nuthatch_cluster::keys::Keys;
use nuthatch_cluster::request::Change;

/// Returns the keys of the cluster of the tests.
fn keys() -> Keys {
    Keys::new("test").expect("a name")
}

/// Returns the revision of a change.
fn revision_of(change: &Change) -> i64 {
    match change {
        Change::Put(key) => key.revision,
        Change::Deleted { revision, .. } => *revision,
    }
}
