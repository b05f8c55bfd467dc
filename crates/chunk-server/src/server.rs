//! A running server, from its start to its end, and its metrics.

use crate::connections::Serving;
use crate::credentials::{Credentials, Reloader};
use crate::metrics::{Counters, write_counts, write_stat};
use crate::options::Options;
use crate::site::{Shared, Site};
use nuthatch_listen::tls::write_expiry;
use nuthatch_listen::{
    ConnectionSlots, Lifecycle, LiveReport, LogLines, MetricsFormat, MetricsSource, MetricsText,
    ServerThread, Stopper, bind_all, spawn_acceptors,
};
use nuthatch_origins::{LogLimit, ObjectCache, Prefix};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tracing::info;

/// A running HTTP cache in front of an origin. Dropping it stops the server.
pub struct Server {
    thread: ServerThread,
    lifecycle: Lifecycle,
    shared: Shared,
}

const LOG: LogLines = LogLines {
    stopping: || info!(target: "nuthatch::chunks", "stopping"),
    stopped: || info!(target: "nuthatch::chunks", "stopped"),
};

/// The metrics of a server. They can be read after the server has stopped.
#[derive(Clone)]
pub struct Metrics {
    shared: Shared,
    lifecycle: Lifecycle,
}

impl Metrics {
    /// Returns whether the server drains or has stopped.
    pub fn is_stopping(&self) -> bool {
        self.lifecycle.is_draining()
    }

    /// Returns all metrics in the text format of Prometheus.
    pub fn exposition(&self) -> String {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        self.shared.counters.write(&mut text);
        write_counts(&mut text, &self.shared.cache.counts());
        let stat = self.shared.cache.chunks().map(|chunks| chunks.stat()).unwrap_or_default();
        write_stat(&mut text, &stat);
        write_expiry(&mut text, &self.shared.credentials().certificate_expiry);
        text.finish()
    }
}

impl MetricsSource for Metrics {
    fn metrics(&self, format: MetricsFormat) -> String {
        format.convert(&self.exposition())
    }

    fn is_stopping(&self) -> bool {
        self.lifecycle.is_draining()
    }

    fn live(&self) -> LiveReport {
        LiveReport { server: "chunk server", tables: Vec::new() }
    }
}

impl Server {
    /// Starts to serve the objects below an address.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidInput`](io::ErrorKind::InvalidInput) if the options have a
    /// [problem](Options::problem). Fails if an address cannot be bound or threads cannot be
    /// started.
    pub fn start(cache: ObjectCache, prefix: Prefix, options: &Options) -> io::Result<Self> {
        if let Some(problem) = options.problem() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let (listeners, addresses) = bind_all(&options.addresses)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads)
            .thread_name("nuthatch-chunks")
            .enable_all()
            .build()?;
        let lifecycle = Lifecycle::new();
        let credentials = Arc::new(watch::channel(Credentials::new(options)).0);
        let origin_timeout = options.origin_timeout;
        let (log_limit, counters) = (LogLimit::default(), Counters::default());
        info!(target: "nuthatch::chunks", origin = %prefix, ?addresses, "started");
        let site = Site { cache, prefix, credentials, origin_timeout, log_limit, counters };
        let shared = Shared::new(site);
        let serving = Serving {
            shared: shared.clone(),
            max_head_len: options.max_head_len,
            idle: options.idle,
            slots: Arc::new(ConnectionSlots::new(options.connections)),
            drain: lifecycle.signal(),
        };
        let serve = serve(serving, listeners, options.drain, lifecycle.clone());
        let control = (lifecycle.clone(), LOG);
        let thread = ServerThread::start("nuthatch-serve", runtime, addresses, control, serve)?;
        Ok(Self { thread, lifecycle, shared })
    }

    /// Returns the addresses of the server, with the ports that the system selected for port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.thread.addresses()
    }

    /// Returns a handle that stops this server, from any thread.
    pub fn stopper(&self) -> Stopper {
        self.thread.stopper()
    }

    /// Returns a handle that replaces the credentials of this server, from any thread.
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::clone(&self.shared.credentials))
    }

    /// Returns the metrics of this server.
    pub fn metrics(&self) -> Metrics {
        Metrics { shared: self.shared.clone(), lifecycle: self.lifecycle.clone() }
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

/// Serves at all listeners until the server has stopped.
async fn serve(
    serving: Serving,
    listeners: Vec<TcpListener>,
    drain: Duration,
    lifecycle: Lifecycle,
) -> io::Result<()> {
    let mut acceptors = spawn_acceptors(listeners, |listener| serving.clone().accept(listener))?;
    let finished = async { while acceptors.join_next().await.is_some() {} };
    tokio::select! {
        () = finished => {}
        () = lifecycle.end_after(drain) => {}
    }
    Ok(())
}
