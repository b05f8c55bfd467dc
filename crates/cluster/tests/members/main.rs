//! Members of a cluster in one process, with an etcd in memory, on clocks that the tests set.

mod etcd;
mod history;
mod ownership;
mod schedules;
mod world;

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
