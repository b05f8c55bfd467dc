//! What servers on tokio share: listeners, and a maximum number of connections.
//!
//! [`accept`] accepts connections, and serves no more of them at a time than a [`Room`] has places.
//! When there is no place left, a connection that is idle makes room for a client that waits: see
//! [`Room::must_make_room`]. [`Activity`] knows whether a connection is idle.

mod accept;
mod activity;
mod room;

pub use accept::{accept, bind};
pub use activity::{Activity, OpenCall};
pub use room::Room;
