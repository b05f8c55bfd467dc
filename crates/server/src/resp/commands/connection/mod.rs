//! Commands over the connection: `HELLO`, `AUTH`, `CLIENT`, `ACL`, `MULTI`.

pub(crate) mod acl;
pub(crate) mod client;
pub(crate) mod hello;
pub(crate) mod transactions;
