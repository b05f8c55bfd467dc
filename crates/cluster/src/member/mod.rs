//! A node's part in the cluster, as a state machine.

mod avoided;
mod change;
mod config;
mod etcd_away;
mod forget;
mod handle;
mod holding;
mod identity;
mod machine;
mod messages;
mod ownership;
mod problems;
mod session;
mod settle;
mod stopping;
mod view;

pub use config::{Data, Held, MemberConfig};
pub use machine::Member;
pub use messages::{Command, Event, Input, Items, Output};
