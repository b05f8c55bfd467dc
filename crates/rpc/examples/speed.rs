//! Measures the store over gRPC on loopback, compared with a minimal gRPC server in the same
//! process, which streams rows one by one (messages that are ready together are sent together) and
//! echoes requests.
//!
//! `cargo run --release -p nuthatch-rpc --example speed [ROWS [ROUNDS]]`

use bytes::Bytes;
use nuthatch_rpc::{Client, Options, Scan, Server};
use nuthatch_store::{Durability, Options as StoreOptions, Store, Table};
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::body::Body;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::http::{self};
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower_service::Service;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Lengths of a key and of its value in bytes.
const KEY_LEN: usize = 16;
const VALUE_LEN: usize = 84;
/// Number of lookups in a round.
const GETS: u32 = 20_000;

/// Number of rows in a scan with one row per message.
const SINGLE_ROWS: u64 = 100_000;

/// A row, as generated code encodes it.
#[derive(Clone, PartialEq, prost::Message)]
struct Row {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rows: u64 = arguments.next().map_or(Ok(2_000_000), |rows| rows.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(3), |rounds| rounds.parse())?;
    let folder = tempfile::tempdir()?;
    let options = StoreOptions::new().durability(Durability::None);
    let store = Store::open(folder.path().join("store"), &options)?;
    let table = store.table("rows")?;
    store.update(|txn| {
        (0..rows).try_for_each(|row| txn.append(&table, &key(row), &[b'v'; VALUE_LEN]))
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = Server::start(store.clone(), &Options::new(vec!["127.0.0.1:0".parse()?]))?;
    let plain = runtime.block_on(Plain::start(store, table))?;
    let address = format!("grpc://{}", server.addresses()[0]);
    let client = runtime.block_on(Client::connect(&address))?;
    let channel = Endpoint::from_shared(format!("http://{plain}"))?
        .initial_stream_window_size(2 << 20)
        .initial_connection_window_size(8 << 20)
        .tcp_nodelay(true);
    let channel = runtime.block_on(channel.connect())?;
    for round in 1..=rounds {
        let all = Scan::all();
        let ours = runtime.block_on(scan(client.clone(), all.clone(), rows))?;
        let single = all.batch_bytes(1).limit(rows.min(SINGLE_ROWS));
        let single = runtime.block_on(scan(client.clone(), single, rows.min(SINGLE_ROWS)))?;
        let plain = runtime.block_on(one_by_one(channel.clone(), rows))?;
        println!(
            "round {round}: scan {ours:.2} M rows/s; with a message for each row {single:.3}, \
             {:.0} times; a plain stream of rows {plain:.2}, {:.1} times",
            ours / single,
            ours / plain
        );
        let ours = runtime.block_on(gets(client.clone(), rows))?;
        let echo = runtime.block_on(echoes(channel.clone()))?;
        for (name, mut times) in [("Get", ours), ("echo", echo)] {
            times.sort_unstable();
            let at = |part: usize| times[times.len() * part / 1000].as_micros();
            println!("round {round}: {name}: p50 {} us, p99 {} us", at(500), at(990));
        }
    }
    Ok(())
}

fn key(row: u64) -> Vec<u8> {
    format!("{row:0KEY_LEN$}").into_bytes()
}

/// Returns millions of rows per second.
fn per_second(rows: u64, time: Duration) -> f64 {
    rows as f64 / time.as_secs_f64() / 1e6
}

async fn scan(client: Client, scan: Scan, rows: u64) -> Result<f64> {
    let start = Instant::now();
    let (mut count, mut bytes) = (0, 0);
    let mut stream = client.scan("rows", &scan);
    while let Some(batch) = stream.next().await {
        for (key, value) in batch?.iter() {
            count += 1;
            bytes += key.len() + value.len();
        }
    }
    assert_eq!((count, bytes as u64), (rows, rows * (KEY_LEN + VALUE_LEN) as u64));
    Ok(per_second(rows, start.elapsed()))
}

async fn gets(client: Client, rows: u64) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for get in 0..u64::from(GETS) {
        let key = key(get * 7919 % rows);
        let start = Instant::now();
        let value = client.get("rows", &key).await?;
        times.push(start.elapsed());
        assert_eq!(value.map(|value| value.len()), Some(VALUE_LEN));
    }
    Ok(times)
}

/// Calls the plain server.
struct Caller(tonic::client::Grpc<Channel>);

impl Caller {
    async fn new(channel: Channel) -> Result<Self> {
        let mut grpc = tonic::client::Grpc::new(channel);
        grpc.ready().await?;
        Ok(Self(grpc))
    }
}

async fn one_by_one(channel: Channel, rows: u64) -> Result<f64> {
    let mut caller = Caller::new(channel).await?;
    let start = Instant::now();
    let codec = ProstCodec::<Row, Row>::default();
    let path = PathAndQuery::from_static("/plain.Plain/Rows");
    let answer = caller.0.server_streaming(Request::new(Row::default()), path, codec).await?;
    let (mut stream, mut count) = (answer.into_inner(), 0);
    while stream.message().await?.is_some() {
        count += 1;
    }
    assert_eq!(count, rows);
    Ok(per_second(rows, start.elapsed()))
}

async fn echoes(channel: Channel) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    let row = Row { key: vec![b'k'; KEY_LEN].into(), value: vec![b'v'; VALUE_LEN].into() };
    let mut caller = Caller::new(channel).await?;
    for _ in 0..GETS {
        let start = Instant::now();
        caller.0.ready().await?;
        let codec = ProstCodec::<Row, Row>::default();
        let path = PathAndQuery::from_static("/plain.Plain/Echo");
        let answer = caller.0.unary(Request::new(row.clone()), path, codec).await?;
        times.push(start.elapsed());
        assert_eq!(answer.into_inner(), row);
    }
    Ok(times)
}

/// A minimal server.
#[derive(Clone)]
struct Plain {
    store: Store,
    table: Table,
}

impl Plain {
    async fn start(store: Store, table: Table) -> Result<SocketAddr> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let service = Self { store, table };
        let server = tonic::transport::Server::builder()
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20)
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        Ok(address)
    }
}

impl NamedService for Plain {
    const NAME: &'static str = "plain.Plain";
}

impl Service<http::Request<Body>> for Plain {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future =
        Pin<Box<dyn Future<Output = std::result::Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<Row, Row>::default());
            Ok(match request.uri().path() {
                "/plain.Plain/Rows" => grpc.server_streaming(Rows(service), request).await,
                _ => grpc.unary(Echo, request).await,
            })
        })
    }
}

/// Sends a message for each row.
struct Rows(Plain);

impl ServerStreamingService<Row> for Rows {
    type Response = Row;
    type ResponseStream = ReceiverStream<std::result::Result<Row, Status>>;
    type Future = std::future::Ready<std::result::Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _: Request<Row>) -> Self::Future {
        let (sender, receiver) = mpsc::channel(1024);
        let Plain { store, table } = self.0.clone();
        tokio::task::spawn_blocking(move || {
            for batch in store.batches(&table, &nuthatch_store::Scan::all()) {
                let Ok(batch) = batch else { return };
                for (key, value) in batch.iter() {
                    let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
                    if sender.blocking_send(Ok(Row { key, value })).is_err() {
                        return;
                    }
                }
            }
        });
        std::future::ready(Ok(Response::new(ReceiverStream::new(receiver))))
    }
}

/// Returns the request.
struct Echo;

impl UnaryService<Row> for Echo {
    type Response = Row;
    type Future = std::future::Ready<std::result::Result<Response<Row>, Status>>;

    fn call(&mut self, request: Request<Row>) -> Self::Future {
        std::future::ready(Ok(Response::new(request.into_inner())))
    }
}
