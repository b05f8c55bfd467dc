//! Timeouts: servers that accept connections and then do nothing.

use super::served::{Served, TABLE, code, is, options, served_to};
use nuthatch_rpc::{Batch, BatchWriterOptions, Client, ClientOptions, Error, Scan};
use nuthatch_store::{Range, Start};
use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const SHORT: Duration = Duration::from_millis(50);
/// A timeout for tests that would hang otherwise.
const PATIENCE: Duration = Duration::from_mins(2);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn client(address: SocketAddr, options: &ClientOptions) -> Result<Client, Error> {
    // Uses a runtime that continues, because it owns the connection.
    static RUNTIME: std::sync::LazyLock<Runtime> = std::sync::LazyLock::new(runtime);
    let address = format!("grpc://{address}");
    RUNTIME.block_on(Client::connect_with(&address, options))
}

/// Waits for a future that must fail, and returns the error.
#[track_caller]
fn fails<T: std::fmt::Debug>(call: impl Future<Output = Result<T, Error>>) -> Error {
    let failed = runtime().block_on(async { tokio::time::timeout(PATIENCE, call).await });
    failed.expect("it does not wait for ever").expect_err("no answer")
}

/// Like a stopped process, or one at its maximum number of connections: the kernel accepts, and no
/// program responds.
fn mute() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Regression: every call waited forever.
#[test]
fn calls_to_a_server_that_never_responds_end_with_the_timeout() {
    let (_listener, address) = mute();
    let client = client(address, &ClientOptions::new().timeout(SHORT).retries(0));
    let client = client.expect("the kernel accepts");
    let writer = BatchWriterOptions::new();
    let mut scan = client.scan(TABLE, &Scan::all());
    let errors = [
        fails(client.get(TABLE, b"a")),
        fails(client.put(TABLE, b"a", b"1")),
        fails(client.stat()),
        fails(client.write_batch(Batch::new().put(TABLE, b"a", b"1"))),
        fails(client.txn()),
        fails(client.batch_writer(&writer)),
        fails(client.watch(None, &Range::all(), Start::Now)),
        fails(client.backup(false)),
        fails(async { scan.next().await.expect("no end") }),
    ];
    for error in errors {
        assert_eq!((error.code(), error.status()), ("deadline", 4), "{error}");
        let start = format!("grpc://{address}: expected a response within 50ms, found none;");
        assert!(error.message().starts_with(&start), "{error}");
        assert!(error.message().contains("`timeout` (--timeout-ms)"), "{error}");
    }
}

#[test]
fn retries_share_the_time_of_a_call() {
    let (_listener, address) = mute();
    let client = client(address, &ClientOptions::new().timeout(SHORT).retries(u32::MAX));
    let client = client.expect("the kernel accepts");
    assert_eq!(fails(client.get(TABLE, b"a")).code(), "deadline");
}

#[test]
fn connecting_ends_at_its_timeout_whatever_the_retries() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("grpc://{}", free.local_addr().expect("an address"));
    drop(free);
    let options = ClientOptions::new().connect_timeout(SHORT * 4).retries(u32::MAX);
    let error = fails(Client::connect_with(&address, &options));
    let start = format!("{address}: could not connect within 200ms; could not connect: ");
    assert!(error.message().starts_with(&start), "{error}");
    assert!(error.message().contains("connection refused"), "{error}");
    assert!(error.message().contains("`connect_timeout` (--connect-timeout-ms)"), "{error}");
    assert_eq!(error.code(), "transport");
}

/// Passes bytes between clients and a server until it is silenced. Connections stay open.
struct Relay {
    address: SocketAddr,
    is_silent: Arc<AtomicBool>,
}

impl Relay {
    fn to(server: SocketAddr) -> Self {
        Self::after(server, |_| {})
    }

    /// As [`to`](Self::to), after something else was done with the listener.
    fn after(server: SocketAddr, first: impl FnOnce(&TcpListener) + Send + 'static) -> Self {
        let (listener, address) = mute();
        let is_silent = Arc::new(AtomicBool::new(false));
        let silent = Arc::clone(&is_silent);
        thread::spawn(move || {
            first(&listener);
            for client in listener.incoming() {
                let client = client.expect("a connection");
                let server = TcpStream::connect(server).expect("a connection");
                let ends = [(&client, &server), (&server, &client)];
                for (from, to) in ends.map(|(from, to)| (from.try_clone(), to.try_clone())) {
                    let (from, to) = (from.expect("a socket"), to.expect("a socket"));
                    let silent = Arc::clone(&silent);
                    thread::spawn(move || pass_on(from, to, &silent));
                }
            }
        });
        Self { address, is_silent }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_silent: &AtomicBool) {
    let mut bytes = [0; 4096];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        if !is_silent.load(Ordering::Relaxed) && to.write_all(&bytes[..len]).is_err() {
            return;
        }
    }
}

fn served(keepalive: Duration) -> Served {
    let options = options().keepalive(keepalive).drain(Duration::ZERO);
    let served = served_to(&options, &ClientOptions::new());
    served.store.keep_changes(10, 1 << 20).expect("kept");
    served
}

#[test]
fn a_watch_of_a_server_that_stops_responding_is_lost() {
    let served = served(PATIENCE);
    let relay = Relay::to(served.server.addresses()[0]);
    let options = ClientOptions::new().keepalive(SHORT).retries(0);
    let client = client(relay.address, &options).expect("a client");
    let mut watch = served.wait(client.watch(None, &Range::all(), Start::Now)).expect("a watch");
    served.store.put(&served.table, b"a", b"1").expect("written");
    assert_eq!(served.wait(watch.next()).expect("no end").expect("changes").len(), 1);
    relay.is_silent.store(true, Ordering::Relaxed);
    let error = fails(async { watch.next().await.expect("no end") });
    assert_eq!(error.message(), "the connection was lost; was the server stopped?");
    assert_eq!(error.code(), "transport");
}

/// Regression: the server kept the call and its memory forever.
#[test]
fn the_calls_of_a_client_that_stops_responding_end() {
    let served = served(SHORT);
    let relay = Relay::to(served.server.addresses()[0]);
    let client = client(relay.address, &ClientOptions::new().retries(0)).expect("a client");
    let _watch = served.wait(client.watch(None, &Range::all(), Start::Now)).expect("a watch");
    served.until(|served| served.server.metrics().open_calls() == 1);
    relay.is_silent.store(true, Ordering::Relaxed);
    served.until(|served| served.server.metrics().open_calls() == 0);
}

#[test]
fn a_watch_waits_for_longer_than_a_call_while_the_server_is_alive() {
    let served = served_to(&options(), &ClientOptions::new().timeout(SHORT).keepalive(SHORT));
    served.store.keep_changes(10, 1 << 20).expect("kept");
    let mut watch = served.watch(Start::Now).expect("a watch");
    // Another call uses its whole timeout meanwhile.
    let writing = served.store.write().expect("the write lock");
    assert_eq!(code(served.wait(served.client.put(TABLE, b"a", b"1"))), is("deadline", 4));
    drop(writing);
    served.store.put(&served.table, b"b", b"1").expect("written");
    let changes = served.wait(watch.next()).expect("no end").expect("changes");
    assert!(!changes.is_empty());
}

/// A server with TLS closes such a connection. Regression: the message only said that it was lost.
#[test]
fn a_server_that_closes_plain_connections_may_have_tls() {
    let (listener, address) = mute();
    thread::spawn(move || listener.incoming().for_each(drop));
    let options = ClientOptions::new().retries(0);
    let error = match client(address, &options) {
        Ok(client) => fails(client.get(TABLE, b"a")),
        Err(error) => error,
    };
    assert!(error.message().contains("grpcs://"), "{error}");
}

/// Reads the next frame of HTTP/2, and returns its type.
fn frame(stream: &mut TcpStream) -> u8 {
    let mut head = [0; 9];
    stream.read_exact(&mut head).expect("the head of a frame");
    let len = head[..3].iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).expect("a frame");
    head[3]
}

/// Refuses the calls of a connection, like a server that closes it while a request is being sent.
fn refuse_one(listener: &TcpListener) {
    const HEADERS: u8 = 1;
    // Empty settings, then GOAWAY without an error, with 0 as the last executed stream.
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (mut stream, _) = listener.accept().expect("a connection");
    stream.write_all(&SETTINGS).expect("sent");
    stream.read_exact(&mut [0; 24]).expect("a preface");
    while frame(&mut stream) != HEADERS {}
    stream.write_all(&GOAWAY).expect("sent");
}

/// Regression: writes were not retried although the server had reported that it did not execute
/// them.
#[test]
fn a_write_after_goaway_is_retried() {
    let served = served(PATIENCE);
    let client = || {
        let relay = Relay::after(served.server.addresses()[0], refuse_one);
        client(relay.address, &ClientOptions::new().retries(1)).expect("a client")
    };
    served.wait(client().put(TABLE, b"a", b"1")).expect("written");
    let batch = Batch::new().put(TABLE, b"b", b"1");
    served.wait(client().write_batch(batch)).expect("written");
    for key in [b"a", b"b"] {
        assert!(served.store.get(&served.table, key).expect("read").is_some());
    }
}
