//! The ordered store over gRPC: a [`Server`] for a store on this machine, and a [`Client`] with the
//! operations of the store.
//!
//! `proto/store.proto` defines the interface. Any gRPC client can call the server, which also
//! describes the interface by reflection.
//!
//! | module | content |
//! |---|---|
//! | `server` | the server: connections, middleware for each call, the service, limits, reload |
//! | `client` | the client: connecting, calls, streams that resume |
//! | `messages` | generated messages, and their conversion to types of the store |
//! | `error`, `transport` | errors on both sides, and why a server could not be reached |
//!
//! A call passes the middleware (token, deadline, limits), and the service executes it as an
//! operation of the store. Messages of a response are created only as fast as the client receives
//! them.

mod client;
mod error;
mod messages;
mod server;
mod transport;

pub use client::tls::ClientTls;
pub use client::{
    Ack, BackupStream, Batch, BatchWriter, BatchWriterOptions, Client, ClientOptions, DEFAULT_PORT,
    Found, RowStream, Scan, StoreStat, TableInfo, Txn, WatchStream,
};
pub use error::{Error, Result};
pub use messages::rows::RowBatch;
pub use nuthatch_listen::tls::{ServerTls, TlsError};
pub use nuthatch_listen::{ReloadError, Stopper};
pub use server::options::Options;
pub use server::reload::{Reloaded, Reloader};
pub use server::tokens::{Tokens, TokensError};
pub use server::{Metrics, Server};
