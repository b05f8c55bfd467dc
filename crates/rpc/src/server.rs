//! A running server, from the first to listen to the last to stop.

use crate::budget::Budget;
use crate::connections::Connections;
use crate::drain::{self, Drain, Phase};
use crate::figures::Figures;
use crate::gate::{Gate, Rules};
use crate::options::Options;
use crate::proto::store_server::StoreServer;
use crate::reload::{LiveTls, Reloader};
use crate::service::{Limits, Service, Shared};
use crate::tables::Tables;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use nuthatch_listen::{Room, bind};
use nuthatch_store::{BatchOptions, Store};
use std::fmt::{self, Write};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::service::Routes;
use tower_layer::Layer;
use tracing::info;

/// Bytes that a client may send before the server has looked at them: for a call, and for all
/// calls of a connection.
const CALL_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Bytes of headers that a call may have.
const MAX_HEADER_LEN: u32 = 16 << 10;
/// How long clients have to hear that their calls have ended, and threads to finish what they read.
const FAREWELL: Duration = Duration::from_secs(1);

/// A server of a store that runs. It stops when this is dropped.
pub struct Server {
    addresses: Vec<SocketAddr>,
    phase: Arc<watch::Sender<Phase>>,
    figures: Arc<Figures>,
    budget: Arc<Budget>,
    reloader: Reloader,
    watch_failures: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<watch::Sender<Phase>>);

impl Stopper {
    /// Asks the server to stop: nothing new begins, and what goes on may do so for as long as the
    /// options say.
    pub fn stop(&self) {
        self.0.send_if_modified(|phase| {
            let serves = *phase == Phase::Serving;
            if serves {
                // Logged before the server sees it: the process may end at once.
                info!(target: "nuthatch::rpc", "stopping");
            }
            *phase = (*phase).max(Phase::Draining);
            serves
        });
    }
}

/// What a server counts. It can be read for longer than the server runs.
#[derive(Clone)]
pub struct Counts {
    figures: Arc<Figures>,
    budget: Arc<Budget>,
    watch_failures: Arc<AtomicU64>,
    phase: Arc<watch::Sender<Phase>>,
}

impl Counts {
    /// Bytes that requests and answers take at present.
    pub fn held_bytes(&self) -> u64 {
        self.budget.held()
    }

    /// Reads of commits for watches that failed and were tried again.
    pub fn watch_failures(&self) -> u64 {
        self.watch_failures.load(Ordering::Relaxed)
    }

    /// Calls that are under way.
    pub fn open_calls(&self) -> u64 {
        self.figures.open()
    }

    /// Whether the server was told to stop.
    pub fn is_stopping(&self) -> bool {
        *self.phase.borrow() != Phase::Serving
    }

    /// All of it, in Prometheus's text.
    pub fn exposition(&self) -> String {
        let mut text = self.figures.exposition();
        let name = "nuthatch_rpc_held_bytes";
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} Bytes that requests and answers take.");
        let _ = writeln!(text, "# TYPE {name} gauge\n{name} {}", self.held_bytes());
        let name = "nuthatch_rpc_watch_failures_total";
        let _ = writeln!(text, "# HELP {name} Failed reads of the store for watches, retried.");
        let _ = writeln!(text, "# TYPE {name} counter\n{name} {}", self.watch_failures());
        text
    }
}

impl Server {
    /// Starts to serve a store. Fails where it cannot listen, and with
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) where anybody could do anything.
    pub fn start(store: Store, options: &Options) -> io::Result<Self> {
        if let Some(problem) = options.problem() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let (phase, drain) = drain::channel();
        let (figures, budget) = (Figures::new(), Budget::new(options.memory));
        let (sender, tokens) = tokio::sync::watch::channel(options.tokens.clone());
        let tls = options.tls.clone().map(|tls| Arc::new(LiveTls::new(tls)));
        let reloader = Reloader { tokens: sender, tls: tls.clone() };
        let rules = Rules {
            tokens,
            budget: Arc::clone(&budget),
            message_bytes: options.max_message_len(),
            figures: Arc::clone(&figures),
            drain: drain.clone(),
        };
        let durable = BatchOptions::new().durability(options.durability);
        let writer = store.batch_writer(&durable).map_err(io::Error::other)?;
        let watch_failures = store.watch_failure_counter();
        let tables = Tables::new(store.clone());
        let limits = Limits::of(options);
        let shared = Shared { store, tables, writer, budget: Arc::clone(&budget), limits };
        let bound = options.addresses.iter().map(|address| bind(*address));
        let bound = bound.collect::<io::Result<Vec<_>>>()?;
        let (listeners, addresses): (Vec<_>, Vec<_>) = bound.into_iter().unzip();
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads)
            .max_blocking_threads(options.readers)
            .thread_name("nuthatch-rpc")
            .enable_all()
            .build()?;
        let phase = Arc::new(phase);
        let service = StoreServer::new(Service::new(shared))
            .max_decoding_message_size(options.max_message_len());
        let (options, phases) = (options.clone(), Arc::clone(&phase));
        let serving = Serving { options, gate: Gate::new(rules), phase: phases, drain, tls };
        let thread = thread::Builder::new().name("nuthatch-serve".to_owned());
        let thread = thread.spawn(move || serving.run(runtime, service, listeners))?;
        info!(target: "nuthatch::rpc", ?addresses, "started");
        let thread = Some(thread);
        Ok(Self { addresses, phase, figures, budget, reloader, watch_failures, thread })
    }

    /// Where it listens, with the ports that were free.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What stops this server, from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.phase))
    }

    /// Returns a handle that replaces the certificate and the tokens of this server, from any
    /// thread.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// What it counts, for whoever tells it.
    pub fn counts(&self) -> Counts {
        Counts {
            figures: Arc::clone(&self.figures),
            budget: Arc::clone(&self.budget),
            watch_failures: Arc::clone(&self.watch_failures),
            phase: Arc::clone(&self.phase),
        }
    }

    /// Waits until the server has stopped.
    pub fn wait(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread died")));
        info!(target: "nuthatch::rpc", "stopped");
        ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopper().stop();
        // Whoever wants to know calls `wait`.
        let _ = self.join();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
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

/// What the thread that serves needs.
struct Serving {
    options: Options,
    gate: Gate,
    phase: Arc<watch::Sender<Phase>>,
    drain: Drain,
    tls: Option<Arc<LiveTls>>,
}

impl Serving {
    fn run(
        self,
        runtime: Runtime,
        service: StoreServer<Service>,
        listeners: Vec<TcpListener>,
    ) -> io::Result<()> {
        let served = runtime.block_on(self.serve(service, listeners));
        runtime.shutdown_timeout(FAREWELL);
        served
    }

    async fn serve(
        self,
        service: StoreServer<Service>,
        listeners: Vec<TcpListener>,
    ) -> io::Result<()> {
        let (reporter, health) = tonic_health::server::health_reporter();
        reporter.set_serving::<StoreServer<Service>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(crate::proto::DESCRIPTOR)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .map_err(io::Error::other)?;
        let routes = Routes::new(service).add_service(health).add_service(reflection).prepare();
        let (closing, drain) = drain::channel();
        let connections = Connections {
            http: http(&self.options),
            service: self.gate.layer(routes),
            tls: self.tls,
            room: Arc::new(Room::new(self.options.connections)),
            handshake: self.options.handshake,
            idle: self.options.idle,
            drain,
        };
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            accepting.spawn(connections.clone().accept(listener));
        }
        let served = async {
            self.drain.clone().begun().await;
            // Load balancers hear of it before connections close.
            reporter.set_not_serving::<StoreServer<Service>>().await;
            closing.send_replace(Phase::Draining);
            while accepting.join_next().await.is_some() {}
        };
        let over = async {
            self.drain.clone().begun().await;
            tokio::time::sleep(self.options.drain).await;
            self.phase.send_replace(Phase::Ended);
            // Streams have told their clients by then.
            tokio::time::sleep(FAREWELL).await;
        };
        tokio::select! {
            () = served => {}
            () = over => {}
        }
        Ok(())
    }
}
