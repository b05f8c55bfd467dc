//! A server for tests.

use nuthatch_rpc::{Client, ClientOptions, Error, Options, Server, WatchStream};
use nuthatch_store::{Options as StoreOptions, Range, Start, Store, Table};
use std::future::Future;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// A table that exists.
pub(crate) const TABLE: &str = "birds";

/// A server of a store in a new folder, and a client with its runtime.
pub(crate) struct Served {
    // Dropped in this order: the server, then its store.
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) store: Store,
    pub(crate) table: Table,
    pub(crate) runtime: Runtime,
    _folder: TempDir,
}

/// Returns options for a server at a free port of the loopback address.
pub(crate) fn options() -> Options {
    Options::new(vec!["127.0.0.1:0".parse().expect("an address")]).threads(1).readers(4)
}

pub(crate) fn served() -> Served {
    served_with(&options())
}

pub(crate) fn served_with(options: &Options) -> Served {
    served_to(options, &ClientOptions::new())
}

pub(crate) fn served_to(options: &Options, client: &ClientOptions) -> Served {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path().join("store"), &StoreOptions::new());
    let store = store.expect("a store");
    let table = store.table(TABLE).expect("a table");
    let server = Server::start(store.clone(), options).expect("a server");
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let client = runtime.block_on(Client::connect_with(&address(&server), client));
    let client = client.expect("a client");
    Served { server, client, store, table, runtime, _folder: folder }
}

pub(crate) fn address(server: &Server) -> String {
    format!("grpc://{}", server.addresses()[0])
}

impl Served {
    /// Waits for a call, on a thread of the runtime.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        self.runtime.block_on(self.runtime.spawn(call)).expect("no panic")
    }

    /// Waits for a call that borrows, on this thread.
    pub(crate) fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// Adds `rows` rows with values of `value_len` bytes to the table.
    pub(crate) fn fill(&self, rows: u32, value_len: usize) {
        let value = vec![b'v'; value_len];
        let filled = self
            .store
            .update(|txn| (0..rows).try_for_each(|row| txn.put(&self.table, &key(row), &value)));
        filled.expect("rows");
    }

    /// Watches all tables.
    pub(crate) fn watch(&self, start: Start) -> Result<WatchStream, Error> {
        self.wait(self.client.watch(None, &Range::all(), start))
    }

    /// Polls until a condition holds.
    pub(crate) fn until(&self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            std::thread::yield_now();
        }
    }

    pub(crate) fn open_transactions(&self) -> u64 {
        self.store.stat().expect("a store").open_transactions
    }
}

/// Returns the key of a row of `fill`.
pub(crate) fn key(row: u32) -> Vec<u8> {
    format!("{row:08}").into_bytes()
}

/// Returns the code and the status of an error.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(answer: Result<T, Error>) -> (String, i32) {
    let error = answer.expect_err("an error");
    (error.code().to_owned(), error.status())
}

/// Returns what `code` returns for an error with this code.
pub(crate) fn is(code: &str, status: i32) -> (String, i32) {
    (code.to_owned(), status)
}
