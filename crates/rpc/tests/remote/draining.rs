//! Draining.

use super::served::{Served, TABLE, options, served_with};
use nuthatch_rpc::{Batch, BatchWriterOptions, Client, ClientOptions, Scan};
use nuthatch_store::Start;
use std::net::TcpStream;
use std::time::Duration;

/// Stops the server, and waits until no client can connect.
fn stop(served: &Served) {
    served.server.stopper().stop();
    let address = served.server.addresses()[0];
    served.until(|_| TcpStream::connect(address).is_err());
}

#[test]
fn draining_finishes_calls_and_accepts_no_new_ones() {
    let served = served_with(&options().batch_bytes(16 << 10).drain(Duration::from_hours(1)));
    served.fill(20_000, 1000);
    let client = served.client.clone();
    let mut stream = client.scan(TABLE, &Scan::all());
    let mut came = served.wait(stream.next()).expect("a batch").expect("rows").len();
    stop(&served);
    while let Some(batch) = served.wait(stream.next()) {
        came += batch.expect("rows").len();
    }
    assert_eq!(came, 20_000);
    let Served { server, .. } = served;
    server.wait().expect("it stops when nothing goes on");
}

#[test]
fn calls_that_exceed_the_time_to_drain_are_ended() {
    let served = served_with(&options().drain(Duration::from_millis(20)));
    served.fill(20_000, 1000);
    let mut stream = served.client.scan(TABLE, &Scan::all());
    served.wait(stream.next()).expect("a batch").expect("rows");
    stop(&served);
    served.until(|served| served.open_transactions() == 0);
    let error = loop {
        if let Err(error) = served.wait(stream.next()).expect("an error before the end") {
            break error;
        }
    };
    assert_eq!((error.code(), error.is_transient()), ("draining", true));
}

#[test]
fn watches_end_at_once_and_batches_when_they_are_written() {
    let options = options().drain(Duration::from_hours(1));
    let served = super::served::served_to(&options, &ClientOptions::new().retries(0));
    served.store.keep_changes(10, 1 << 20).expect("kept");
    let mut watch = served.watch(Start::Now).expect("a watch");
    let writer = served.wait(served.client.batch_writer(&BatchWriterOptions::new()));
    let writer = writer.expect("a writer");
    let ack = served.wait(writer.submit(Batch::new().put(TABLE, b"a", b"1")));
    served.wait(ack.expect("submitted")).expect("written");
    let changes = served.wait(watch.next()).expect("changes").expect("changes");
    assert_eq!(changes.len(), 1);
    served.server.stopper().stop();
    assert_eq!(
        served.wait(watch.next()).expect("an error").expect_err("an error").code(),
        "draining"
    );
    let Served { server, .. } = served;
    server.wait().expect("it stops when nothing goes on");
}

#[test]
fn a_client_reconnects_to_a_restarted_server() {
    let first = served_with(&options().drain(Duration::from_millis(20)));
    first.fill(5000, 1000);
    let address = first.server.addresses()[0];
    let url = format!("grpc://{address}");
    let patient = ClientOptions::new().retries(100).window_bytes(64 << 10);
    let client = first.wait(Client::connect_with(&url, &patient)).expect("a client");
    let mut stream = client.scan(TABLE, &Scan::all().across_transactions());
    let mut came = first.wait(stream.next()).expect("a batch").expect("rows").len();
    let Served { server, store, client: _client, runtime, .. } = first;
    server.stopper().stop();
    drop(server);
    let options = nuthatch_rpc::Options::new(vec![address]);
    let _second = nuthatch_rpc::Server::start(store, &options).expect("the same port");
    runtime.block_on(async {
        while let Some(batch) = stream.next().await {
            came += batch.expect("rows").len();
        }
        assert_eq!(came, 5000);
        assert!(client.get(TABLE, b"none").await.expect("read").is_none());
    });
}
