//! Stores of both kinds, without Python classes: in this process and behind a server.
//!
//! [`Engine`] returns each call as [`Work`](crate::runtime::Work) of either [`Local`] or
//! [`Remote`]. Closing a store releases its [`StoreUsers`].

mod condition;
mod durability;
mod kinds;
mod local;
mod remote;
mod scan_options;
mod tables;
mod users;
mod writes;

pub(crate) use condition::OwnedCondition;
pub(crate) use durability::{durability_of, take_durability};
pub(crate) use kinds::{Engine, caller};
pub(crate) use local::{Local, TxnOwner, entry, values};
pub(crate) use remote::{Remote, ensure_table, ensure_tables};
pub(crate) use scan_options::{ScanOptions, range_of};
pub(crate) use tables::TableRef;
pub(crate) use users::StoreUser;
pub(crate) use writes::Writes;
