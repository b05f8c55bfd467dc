//! Members of a cluster in one process, with an etcd in memory, on clocks that the tests set.

mod etcd;
mod history;
mod ownership;
mod schedules;
mod world;
