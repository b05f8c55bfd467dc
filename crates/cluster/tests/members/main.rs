//! Members of a cluster in one process, with an etcd in memory, on clocks that the tests set.

mod data_loss;
mod etcd_away;
mod history;
mod ownership;
mod schedules;
mod world;

use nuthatch_cluster::keys::Keys;

/// Returns the keys of the cluster of the tests.
fn keys() -> Keys {
    Keys::new("test").expect("a name")
}
