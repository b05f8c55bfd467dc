//! A running server, from its start to its end, and its metrics.

mod budget;
mod connections;
mod http2_stream;
mod live;
mod methods;
mod metrics;
mod middleware;
pub(crate) mod options;
pub(crate) mod reload;
mod service;
mod tables;
pub(crate) mod tokens;

use crate::messages::proto;
use crate::messages::proto::store_server::StoreServer;
use budget::Budget;
use connections::Connections;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use metrics::CallCounters;
use middleware::{CallLayer, CallPolicy};
use nuthatch_listen::tls::write_expiry;
use nuthatch_listen::{
    ConnectionSlots, Lifecycle, LiveReport, LiveTable, LogLines, MetricsFormat, MetricsSource,
    MetricsText, ServerThread, Stopper, bind_all, spawn_acceptors,
};
use nuthatch_store::{BatchOptions, Store};
use options::Options;
use reload::{LiveTls, Reloader};
use service::{Limits, Service, Shared};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tables::Tables;
use tokio::runtime::Builder;
use tonic::service::Routes;
use tower_layer::Layer;
use tracing::info;

/// The flow-control windows of HTTP/2 in bytes: how much a client may send before the server has
/// read it, for one call and for all calls of a connection.
const CALL_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// The maximum length of the headers of a call in bytes.
const MAX_HEADER_LEN: u32 = 16 << 10;
/// Time after the end of the drain for streams to send their final status to their clients.
const FINAL_STATUS_TIME: Duration = Duration::from_secs(1);

/// A running server of a store. Dropping it stops the server.
pub struct Server {
    thread: ServerThread,
    lifecycle: Lifecycle,
    counters: Arc<CallCounters>,
    budget: Arc<Budget>,
    store: Store,
    reloader: Reloader,
    watch_failures: Arc<AtomicU64>,
}

const LOG: LogLines = LogLines {
    stopping: || info!(target: "nuthatch::rpc", "stopping"),
    stopped: || info!(target: "nuthatch::rpc", "stopped"),
};

/// The metrics of a server. They can be read after the server has stopped.
#[derive(Clone)]
pub struct Metrics {
    counters: Arc<CallCounters>,
    budget: Arc<Budget>,
    watch_failures: Arc<AtomicU64>,
    lifecycle: Lifecycle,
    store: Store,
    tls: Option<Arc<LiveTls>>,
}

impl Metrics {
    /// Returns the tables of the store for the live page.
    pub fn live_tables(&self) -> Vec<LiveTable> {
        live::tables(&self.store)
    }

    /// Returns the number of bytes that requests and responses hold, of [`Options::memory`].
    pub fn held_bytes(&self) -> u64 {
        self.budget.held()
    }

    /// Returns the number of temporary failures to read the store for watches. Each failed read is
    /// retried.
    pub fn watch_failures(&self) -> u64 {
        self.watch_failures.load(Ordering::Relaxed)
    }

    /// Returns the number of calls in progress.
    pub fn open_calls(&self) -> u64 {
        self.counters.open()
    }

    /// Returns whether the server is draining or has stopped.
    pub fn is_stopping(&self) -> bool {
        self.lifecycle.is_draining()
    }

    /// Returns the metrics of calls and of the store in the Prometheus text format. Their names
    /// begin with `nuthatch_rpc_` or `nuthatch_store_`.
    /// [`certificate_exposition`](Self::certificate_exposition) has those of certificates.
    pub fn exposition(&self) -> String {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        self.write(&mut text);
        text.finish()
    }

    /// Returns the metric of certificates in the text format of Prometheus. It is empty without
    /// TLS.
    pub fn certificate_exposition(&self) -> String {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        write_expiry(&mut text, &self.tls.as_ref().map(|tls| tls.expiry()).unwrap_or_default());
        text.finish()
    }

    fn write(&self, text: &mut MetricsText) {
        self.counters.write(text);
        let help = "Bytes that requests and responses hold, of the memory limit.";
        text.gauge("nuthatch_rpc_held_bytes", help).sample(&[], self.held_bytes());
        let help = "Temporary failures to read the store for watches. Each read is retried.";
        text.counter("nuthatch_rpc_watch_failures", help).sample(&[], self.watch_failures());
        // Without a value in a child process, which has no store.
        let Ok(usage) = self.store.usage() else { return };
        let help = "Bytes of the store up to the last page in use, including free pages, which \
                    are reused.";
        text.gauge("nuthatch_store_used_bytes", help).sample(&[], usage.used_bytes);
        let help = "Length of the memory map: the file can grow up to it without moving the map.";
        text.gauge("nuthatch_store_map_bytes", help).sample(&[], usage.map_bytes);
        let help = "Reader slots that are in use or were used, in all processes.";
        text.gauge("nuthatch_store_reader_slots", help).sample(&[], usage.readers);
        let help = "Maximum number of reader slots.";
        text.gauge("nuthatch_store_reader_slots_limit", help).sample(&[], usage.max_readers);
    }
}

impl MetricsSource for Metrics {
    fn metrics(&self, format: MetricsFormat) -> String {
        format.convert(&(self.exposition() + &self.certificate_exposition()))
    }

    fn is_stopping(&self) -> bool {
        self.lifecycle.is_draining()
    }

    fn live(&self) -> LiveReport {
        LiveReport { server: "store server", tables: self.live_tables() }
    }
}

impl Server {
    /// Starts a server for a store, on threads of its own.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the options have a
    /// [problem](Options::problem), and the system's error if an address cannot be bound or threads
    /// cannot be started.
    pub fn start(store: Store, options: &Options) -> io::Result<Self> {
        if let Some(problem) = options.problem() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let lifecycle = Lifecycle::new();
        let (counters, budget) = (CallCounters::new(), Budget::new(options.memory));
        let (sender, tokens) = tokio::sync::watch::channel(options.tokens.clone());
        let tls = options.tls.clone().map(|tls| Arc::new(LiveTls::new(tls)));
        let reloader = Reloader { tokens: sender, tls: tls.clone() };
        let policy = CallPolicy {
            tokens,
            budget: Arc::clone(&budget),
            message_bytes: options.max_message_len(),
            counters: Arc::clone(&counters),
            drain: lifecycle.signal(),
        };
        let durable = BatchOptions::new().durability(options.durability);
        let writer = store.batch_writer(&durable).map_err(io::Error::other)?;
        let watch_failures = store.watch_failure_counter();
        let tables = Tables::new(store.clone());
        let limits = Limits::of(options);
        let shared =
            Shared { store: store.clone(), tables, writer, budget: Arc::clone(&budget), limits };
        let (listeners, addresses) = bind_all(&options.addresses)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads)
            .max_blocking_threads(options.readers)
            .thread_name("nuthatch-rpc")
            .enable_all()
            .build()?;
        let service = StoreServer::new(Service::new(shared))
            .max_decoding_message_size(options.max_message_len());
        let options = options.clone();
        let serving =
            Serving { options, layer: CallLayer::new(policy), lifecycle: lifecycle.clone(), tls };
        let serve = serving.serve(service, listeners);
        let control = (lifecycle.clone(), LOG);
        let thread = ServerThread::start("nuthatch-serve", runtime, addresses, control, serve)?;
        info!(target: "nuthatch::rpc", addresses = ?thread.addresses(), "started");
        Ok(Self { thread, lifecycle, counters, budget, store, reloader, watch_failures })
    }

    /// Returns the addresses of the server, with the ports that the system selected for port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.thread.addresses()
    }

    /// Returns a handle that stops this server, from any thread.
    pub fn stopper(&self) -> Stopper {
        self.thread.stopper()
    }

    /// Returns a handle that replaces the certificate and the tokens of this server, from any
    /// thread.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Returns the metrics of this server.
    pub fn metrics(&self) -> Metrics {
        Metrics {
            counters: Arc::clone(&self.counters),
            budget: Arc::clone(&self.budget),
            watch_failures: Arc::clone(&self.watch_failures),
            lifecycle: self.lifecycle.clone(),
            store: self.store.clone(),
            tls: self.reloader.tls.clone(),
        }
    }

    /// Waits until the server has stopped.
    ///
    /// # Errors
    ///
    /// Fails if a listener cannot be used or a thread of the server panicked.
    pub fn wait(self) -> io::Result<()> {
        self.thread.wait()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

/// Returns HTTP/2 with its limits.
fn http(options: &Options) -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(options.streams)
        .initial_stream_window_size(CALL_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(options.keepalive)
        .keep_alive_timeout(options.keepalive)
        .max_header_list_size(MAX_HEADER_LEN);
    http
}

/// The parameters of the server's thread.
struct Serving {
    options: Options,
    layer: CallLayer,
    lifecycle: Lifecycle,
    tls: Option<Arc<LiveTls>>,
}

impl Serving {
    async fn serve(
        self,
        service: StoreServer<Service>,
        listeners: Vec<TcpListener>,
    ) -> io::Result<()> {
        let (reporter, health) = tonic_health::server::health_reporter();
        reporter.set_serving::<StoreServer<Service>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTOR)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .map_err(io::Error::other)?;
        let routes = Routes::new(service).add_service(health).add_service(reflection).prepare();
        // Connections drain after load balancers have seen the new health status.
        let closing = Lifecycle::new();
        let connections = Connections {
            http: http(&self.options),
            service: self.layer.layer(routes),
            tls: self.tls,
            slots: Arc::new(ConnectionSlots::new(self.options.connections)),
            handshake: self.options.handshake,
            idle: self.options.idle,
            drain: closing.signal(),
        };
        let mut acceptors = spawn_acceptors(listeners, |at| connections.clone().accept(at))?;
        let finished = async {
            self.lifecycle.signal().draining().await;
            reporter.set_not_serving::<StoreServer<Service>>().await;
            closing.drain(|| {});
            while acceptors.join_next().await.is_some() {}
        };
        let ended = async {
            self.lifecycle.end_after(self.options.drain).await;
            // Streams send their final status meanwhile.
            tokio::time::sleep(FINAL_STATUS_TIME).await;
        };
        tokio::select! {
            () = finished => {}
            () = ended => {}
        }
        Ok(())
    }
}
