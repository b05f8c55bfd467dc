//! The ordered store over gRPC: a [`Server`] for a store on this machine, and a [`Client`] with the
//! names of the store.
//!
//! `proto/store.proto` is the contract; any client of gRPC can speak it, and learns it by
//! reflection. Data flows one way in a server: a call passes the `gate` (token, deadline, limits),
//! becomes work of the store (`service`), and answers with messages that are made only as fast as
//! the client takes them.

mod access;
mod budget;
mod client;
mod connections;
mod convert;
mod error;
mod figures;
mod gate;
mod options;
mod proto;
mod reload;
mod rows;
mod server;
mod service;
mod stream;
mod tables;
mod tls;
mod transport;

pub use access::{Tokens, TokensError};
pub use client::{
    Ack, BackupStream, Batch, BatchWriter, BatchWriterOptions, Client, ClientOptions, DEFAULT_PORT,
    Found, RowStream, Scan, StoreStat, TableInfo, Txn, WatchStream,
};
pub use error::{Error, Result};
pub use nuthatch_listen::tls::{ServerTls, TlsError};
pub use nuthatch_listen::{ReloadError, Stopper};
pub use options::Options;
pub use reload::{Reloaded, Reloader};
pub use rows::RowBatch;
pub use server::{Counts, Server};
pub use tls::ClientTls;
