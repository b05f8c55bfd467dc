//! Lost servers: clients retry and reconnect.

use super::served::{Served, TABLE, options, served_to};
use nuthatch_rpc::{Batch, BatchWriterOptions, Client, ClientOptions, Options, Server};
use nuthatch_store::Start;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A timeout for tests that would hang otherwise.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns options for a client that retries a call once, and reconnects for an hour.
fn patient() -> ClientOptions {
    ClientOptions::new().retries(1).reconnect(Duration::from_hours(1))
}

/// Stops a server, and returns its address.
fn gone(served: Served) -> (SocketAddr, Served) {
    let address = served.server.addresses()[0];
    served.server.stopper().stop();
    served.until(|served| {
        // Draining ends when no call is in progress.
        std::net::TcpStream::connect(address).is_err() || served.server.metrics().open_calls() > 0
    });
    (address, served)
}

/// Listens at the address of a server, and closes `count` connections at once.
fn refuse(address: SocketAddr, count: usize) {
    let nobody = TcpListener::bind(address).expect("the same port");
    let (sender, refused) = mpsc::channel();
    thread::spawn(move || {
        for _ in 0..count {
            drop(nobody.accept().expect("a connection"));
            // The test may have failed meanwhile.
            let _ = sender.send(());
        }
    });
    for _ in 0..count {
        refused.recv_timeout(PATIENCE).expect("another try");
    }
    // The thread ends and drops the listener, which frees the port.
    assert!(refused.recv_timeout(PATIENCE).is_err());
}

#[test]
fn a_watch_reconnects_for_a_time_and_not_for_a_number_of_attempts() {
    let served = served_to(&options().drain(Duration::ZERO), &patient());
    served.store.keep_changes(10, 1 << 20).expect("kept");
    let mut watch = served.watch(Start::Now).expect("a watch");
    let (address, served) = gone(served);
    let Served { server, store, table, runtime, client: _client, .. } = served;
    drop(server);
    let next = runtime.spawn(async move { watch.next().await });
    refuse(address, 6);
    let _second = Server::start(store.clone(), &Options::new(vec![address])).expect("a server");
    store.put(&table, b"a", b"1").expect("written");
    let changes = runtime.block_on(next).expect("no panic").expect("no end").expect("changes");
    assert_eq!(changes.len(), 1);
}

#[test]
fn a_writer_reconnects_and_accepts_later_batches() {
    let served = served_to(&options().drain(Duration::ZERO), &patient());
    let writer = served.wait(served.client.batch_writer(&BatchWriterOptions::new()));
    let writer = writer.expect("a writer");
    let put = |key: &'static [u8]| {
        let writer = writer.clone();
        async move { writer.submit(Batch::new().put(TABLE, key, b"1")).await?.await }
    };
    served.wait(put(b"a")).expect("written");
    let (address, served) = gone(served);
    let Served { server, store, table, runtime, client: _client, .. } = served;
    drop(server);
    // The batch in progress may fail: it is unknown whether it was written.
    let lost = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, async {
            while writer.flush().await.is_ok() {
                tokio::task::yield_now().await;
            }
        })
        .await
    });
    lost.expect("it hears of the loss");
    let later = runtime.spawn(put(b"b"));
    refuse(address, 6);
    let _second = Server::start(store.clone(), &Options::new(vec![address])).expect("a server");
    runtime.block_on(later).expect("no panic").expect("written");
    assert!(store.get(&table, b"b").expect("read").is_some());
}

#[test]
fn the_error_after_reconnecting_names_the_time() {
    let limit = ClientOptions::new().retries(1).reconnect(Duration::from_millis(150));
    let served = served_to(&options().drain(Duration::ZERO), &limit);
    served.store.keep_changes(10, 1 << 20).expect("kept");
    let mut watch = served.watch(Start::Now).expect("a watch");
    let writer = served.wait(served.client.batch_writer(&BatchWriterOptions::new()));
    let writer = writer.expect("a writer");
    let (_, served) = gone(served);
    let Served { server, runtime, client: _client, .. } = served;
    drop(server);
    let given_up = "; tried to reconnect for 150ms; `reconnect` (--reconnect-ms) sets the time";
    let error = runtime.block_on(watch.next()).expect("an error").expect_err("an error");
    assert!(error.message().ends_with(given_up), "{error}");
    assert!(error.message().contains("is the server running?"), "{error}");
    assert!(runtime.block_on(watch.next()).is_none(), "the watch has ended");
    let error = runtime.block_on(async {
        loop {
            // The batch in progress fails at once: it may have been written.
            match writer.submit(Batch::new().put(TABLE, b"a", b"1")).await {
                Ok(ack) => drop(ack.await),
                Err(error) => return error,
            }
        }
    });
    assert!(error.message().ends_with(given_up), "{error}");
    assert_eq!(error.code(), "transport");
}

#[test]
fn a_client_without_retries_does_not_reconnect() {
    let options = options().drain(Duration::ZERO);
    let served = served_to(&options, &ClientOptions::new().retries(0));
    served.store.keep_changes(10, 1 << 20).expect("kept");
    let mut watch = served.watch(Start::Now).expect("a watch");
    let (_, served) = gone(served);
    let error = served.wait(watch.next()).expect("an error").expect_err("an error");
    assert!(error.is_transient(), "{error}");
}

#[test]
fn an_unreachable_server_is_reported_in_one_line() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("grpc://{}", free.local_addr().expect("an address"));
    drop(free);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let options = ClientOptions::new().retries(0);
    let connect = Client::connect_with(&address, &options);
    let error = runtime.expect("a runtime").block_on(connect).expect_err("no server");
    let reason = "could not connect: connection refused; is the server running?";
    assert_eq!(error.to_string(), format!("{address}: {reason}"));
    assert_eq!(error.code(), "transport");
}
