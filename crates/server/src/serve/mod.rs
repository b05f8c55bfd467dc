//! Starts, stops and reloads a server.

mod heartbeat;
mod redis_settings;

pub use heartbeat::Heartbeat;

use crate::cluster::{Cluster, Forwarder, SlotThread};
use crate::compression::TrainingThread;
use crate::log;
use crate::net::listener::{Bound, Listener, Listening, listen};
use crate::net::pending_value::min_in_place_len;
use crate::net::reactor::IoBackend;
use crate::protocol::Protocol;
use crate::state::{Exposition, Server, Users};
use crate::tls::Tls;
use crate::warm_restart::Restorer;
use crate::worker::heap;
use crate::worker::{Common, Worker};
use nuthatch_cache::{Cache, Eviction, Prefill};
use nuthatch_listen::admin::{Access, Admin, Listeners as AdminListeners};
use nuthatch_listen::{Address, LiveReport, MetricsFormat, MetricsSource, SocketFiles};
use redis_settings::fixed_settings;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The configuration of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Addresses for clients, with their protocols.
    pub listeners: Vec<Listener>,
    /// Addresses of the admin endpoint.
    pub admin: Vec<Address>,
    /// The number of worker threads.
    pub threads: usize,
    /// The I/O backend.
    pub io_backend: IoBackend,
    /// Certificates for listeners with TLS, which need them.
    pub tls: Option<Tls>,
    /// Whether the server starts without an admin endpoint if one of its addresses is in use.
    pub admin_optional: bool,
    /// The names of the server, and the token of the live page.
    pub admin_access: Access,
}

impl Options {
    /// Creates options with these listeners: one worker thread, the I/O backend `auto`, no admin
    /// endpoint and no TLS.
    pub fn new(listeners: Vec<Listener>) -> Self {
        Self {
            listeners,
            admin: Vec::new(),
            threads: 1,
            io_backend: IoBackend::Auto,
            tls: None,
            admin_optional: false,
            admin_access: Access::default(),
        }
    }

    /// Sets the addresses of the admin endpoint.
    #[must_use]
    pub fn admin(self, admin: Vec<Address>) -> Self {
        Self { admin, ..self }
    }

    /// Sets the number of worker threads.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Sets the I/O backend.
    #[must_use]
    pub fn io_backend(self, io_backend: IoBackend) -> Self {
        Self { io_backend, ..self }
    }

    /// Sets the certificates for listeners with TLS.
    #[must_use]
    pub fn tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct Running {
    common: Arc<Common>,
    listeners: Vec<Listener>,
    /// Optional listeners whose addresses are in use.
    skipped: Vec<Listener>,
    admin_addresses: Vec<Address>,
    admin: Option<Admin>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    files: SocketFiles,
    /// Restores the items of the last run.
    restorer: Option<Restorer>,
    /// Trains dictionaries for the values.
    training: Option<TrainingThread>,
    /// Drops items of slots of a cluster, and moves slots to other nodes.
    slots: Vec<SlotThread>,
    /// Forwards requests to other nodes of a cluster.
    forwarder: Option<Forwarder>,
    /// Prepares free segments, so that no request waits for memory that the system must zero.
    _prefill: Prefill,
}

/// Stops or drains a server.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Common>);

impl Stopper {
    /// Stops all threads after their current iteration of the event loop, without waiting for
    /// requests in progress.
    ///
    /// No dump for a [warm restart](crate::WarmRestart) is written, and one that is being written
    /// ends incomplete.
    pub fn stop(&self) {
        log::stopping();
        if let Some(warm_restart) = &self.0.server.warm_restart {
            warm_restart.cancel();
        }
        if let Some(disk) = &self.0.server.disk {
            disk.cancel_dump();
        }
        self.0.stop();
    }

    /// Drains the server: it accepts no more connections, closes those without a request in
    /// progress, and closes each of the others when its request is answered. Stops after `patience`
    /// at the latest. [`stop`](Self::stop) stops the server at once.
    pub fn drain(&self, patience: Duration) {
        self.0.drain(patience);
    }
}

/// The configuration that a reload applies to a running server. `None` leaves a part unchanged.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Reload {
    /// Certificates for new TLS connections.
    pub tls: Option<Tls>,
    /// All users, which replace the current ones.
    pub users: Option<Users>,
    /// Names and values of settings that `CONFIG SET` can change, by their Redis names.
    pub settings: Vec<(&'static str, String)>,
}

/// Changes certificates, users and settings of a server while it runs.
#[derive(Clone, Debug)]
pub struct Reloader(Arc<Common>);

impl Reloader {
    /// Applies the whole configuration, or nothing. New connections use the new certificates; open
    /// connections keep theirs. Worker threads then close connections whose user was removed or
    /// lost permissions, and those whose client certificate is no longer accepted.
    ///
    /// # Errors
    ///
    /// Fails if a setting has an invalid value; the text names the setting. Nothing is changed
    /// then.
    pub fn reload(&self, reload: Reload) -> Result<(), String> {
        let Self(common) = self;
        common.server.settings.change_all(&reload.settings)?;
        if let Some(tls) = reload.tls {
            common.replace_tls(tls);
        }
        if let Some(users) = reload.users {
            common.server.replace_users(users);
        }
        common.wake();
        Ok(())
    }
}

impl MetricsSource for Common {
    fn metrics(&self, format: MetricsFormat) -> String {
        self.server.metrics(format)
    }

    fn is_stopping(&self) -> bool {
        MetricsSource::is_stopping(&self.server)
    }

    fn live(&self) -> LiveReport {
        self.server.live()
    }
}

/// Stops the other threads when one ends, even by a panic.
struct StopAllOnDrop<'c>(Option<&'c Common>);

impl Drop for StopAllOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(common) = self.0 {
            common.stop();
        }
    }
}

impl Running {
    /// Returns the metrics of this server. They can be read after the server has stopped.
    pub fn metrics(&self) -> Arc<dyn MetricsSource> {
        Arc::<Common>::clone(&self.common)
    }

    /// Starts a server with default settings and without users.
    ///
    /// # Errors
    ///
    /// The same as for [`serve`](Self::serve).
    pub fn start(cache: Arc<Cache>, options: &Options) -> io::Result<Self> {
        Self::serve(Server::new(cache), options)
    }

    /// Starts a server with the settings and users of `server`.
    ///
    /// # Errors
    ///
    /// Fails if an address cannot be bound, the I/O backend is unavailable, a listener with TLS has
    /// no certificates, or a thread cannot be started.
    pub fn serve(mut server: Server, options: &Options) -> io::Result<Self> {
        if options.tls.is_none() && options.listeners.iter().any(|listener| listener.tls) {
            let text = "a listener with TLS: expected a certificate and a key, found none";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        check_cluster(&server, options)?;
        let reactor = options.io_backend.choose()?;
        let mut files = SocketFiles::default();
        let bound = listen(&options.listeners, options.threads, &mut files)?;
        let Bound { sockets, listeners, skipped } = bound;
        let admin = match AdminListeners::bind(&options.admin) {
            Err(error) if options.admin_optional && error.kind() == io::ErrorKind::AddrInUse => {
                AdminListeners::default()
            }
            bound => bound?,
        };
        let admin_addresses = admin.addresses().to_vec();
        server.event_loop = reactor.name();
        server.evicts = server.cache.eviction() != Eviction::None;
        let mut resp = listeners.iter().filter(|one| one.protocol == Protocol::Resp);
        server.port = resp.find_map(|one| one.address.port()).unwrap_or(0);
        server.extra_metrics.push(Exposition::new(options.admin_access.exposition()));
        server.fixed_settings.extend(fixed_settings(&listeners, options.threads));
        // Buffers that gather requests are shorter than this, or at most twice as long.
        heap::set_return_threshold(min_in_place_len(&server.cache));
        let prefill = Prefill::start(&server.cache)?;
        let restorer = match &server.warm_restart {
            Some(warm_restart) => warm_restart.start(&server.cache, &server.compression)?,
            None => None,
        };
        let mut running = Self {
            common: Arc::new(Common::new(server, options.threads, options.tls.clone(), reactor)),
            listeners,
            skipped,
            admin_addresses,
            admin: None,
            threads: Vec::new(),
            files,
            restorer,
            training: None,
            slots: Vec::new(),
            forwarder: None,
            _prefill: prefill,
        };
        running.start_training()?;
        running.start_cluster()?;
        if let Some(snapshots) = &running.common.server.snapshots {
            let common = Arc::downgrade(&running.common);
            snapshots.wake_by(move || {
                if let Some(common) = common.upgrade() {
                    common.wake();
                }
            });
        }
        for (number, listening) in sockets.into_iter().enumerate() {
            running.spawn(number, listening)?;
        }
        if !running.admin_addresses.is_empty() {
            let (common, access) = (Arc::clone(&running.common), options.admin_access.clone());
            running.admin = Some(Admin::start(admin, common, access)?);
        }
        let Self { listeners, admin_addresses, .. } = &running;
        let addresses = addresses(listeners, admin_addresses);
        log::started(options.threads, &addresses, reactor.name());
        Ok(running)
    }

    fn start_cluster(&mut self) -> io::Result<()> {
        let Server { cluster: Some(cluster), compression, .. } = &self.common.server else {
            return Ok(());
        };
        let common = Arc::downgrade(&self.common);
        cluster.wake_by(move || {
            if let Some(common) = common.upgrade() {
                common.wake();
            }
        });
        self.slots.push(Cluster::start_dropping(Arc::clone(cluster))?);
        self.slots.push(Cluster::start_moving(Arc::clone(cluster), Arc::clone(compression))?);
        self.forwarder = Some(Forwarder::start(Arc::clone(cluster))?);
        Ok(())
    }

    fn start_training(&mut self) -> io::Result<()> {
        let (common, server) = (Arc::clone(&self.common), &self.common.server);
        server.hold_compression();
        let (compression, cache) = (&server.compression, &server.cache);
        self.training = TrainingThread::start(compression, cache, move || common.wake())?;
        Ok(())
    }

    fn spawn(&mut self, number: usize, listeners: Vec<Listening>) -> io::Result<()> {
        let common = Arc::clone(&self.common);
        let (ready, is_ready) = mpsc::channel();
        let name = format!("nuthatch-{number}");
        let thread = thread::Builder::new().name(name).spawn(move || {
            let mut worker = match Worker::new(&common, listeners) {
                Ok(worker) => worker,
                Err(error) => {
                    // The thread that starts the server is waiting for the result.
                    let _ = ready.send(Err(error));
                    return Ok(());
                }
            };
            let _ = ready.send(Ok(()));
            let mut stop_all = StopAllOnDrop(Some(&common));
            let ended = worker.run();
            match &ended {
                Err(error) => log::thread_failed(number, error),
                // Other threads may still be draining.
                Ok(()) if !common.is_stopping() => stop_all.0 = None,
                Ok(()) => {}
            }
            drop(stop_all);
            ended
        })?;
        self.threads.push(thread);
        is_ready.recv().map_err(|_| io::Error::other("a thread did not start"))?
    }

    /// Returns the listeners, with the ports that were chosen for port 0.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Returns the admin addresses, with the ports that were chosen for port 0.
    pub fn admin(&self) -> &[Address] {
        &self.admin_addresses
    }

    /// Returns the optional addresses on which the server does not listen because they are in use.
    pub fn skipped(&self) -> &[Listener] {
        &self.skipped
    }

    /// Returns a handle that replaces certificates, users and settings of this server, from any
    /// thread.
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::clone(&self.common))
    }

    /// Returns the name of the I/O backend in use: `io_uring` or `epoll`.
    pub fn io_backend(&self) -> &'static str {
        self.common.reactor.name()
    }

    /// Returns a check of whether the worker threads respond.
    pub fn heartbeat(&self) -> Heartbeat {
        Heartbeat::new(&self.common)
    }

    /// Returns a handle that stops this server from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.common))
    }

    /// Waits until all threads have stopped, and then writes a dump for a [warm
    /// restart](crate::WarmRestart), if the server has one.
    ///
    /// A panic in a worker thread stops the other threads, and is an error here. A panic in another
    /// thread, such as that of the admin endpoint, does not stop the server: a program that should
    /// end if any thread panics sets a panic hook, as `nuthatch serve` does.
    ///
    /// # Errors
    ///
    /// Returns the first error that ended a thread.
    pub fn wait(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        let was_running = !self.threads.is_empty();
        for thread in self.threads.drain(..) {
            let ended =
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            result = result.and(ended);
        }
        // They have sessions of the cache, which a dump must not meet.
        self.training = None;
        self.slots.clear();
        self.forwarder = None;
        // Also if no worker thread could be started: the items of the last run are kept.
        let stop_began = Instant::now();
        if let Some(restorer) = self.restorer.take() {
            restorer.finish(stop_began);
        }
        if let Some(disk) = &self.common.server.disk
            && let Err(error) = disk.close(stop_began + self.common.server.max_dump_time)
        {
            log::disk_not_closed(&error);
        }
        if let Some(warm_restart) = &self.common.server.warm_restart {
            let server = &self.common.server;
            warm_restart.dump((&server.cache, &server.compression), stop_began);
        }
        // The admin endpoint reports that the server is stopping until it has stopped.
        self.admin = None;
        if was_running {
            log::stopped();
        }
        self.files.remove();
        result
    }
}

/// Checks that a node of a cluster has only listeners whose requests it can redirect or forward.
fn check_cluster(server: &Server, options: &Options) -> io::Result<()> {
    let is_other = |protocol| !matches!(protocol, Protocol::Resp | Protocol::Memcache);
    let other = options.listeners.iter().find(|listener| is_other(listener.protocol));
    let (Some(Listener { address, protocol, .. }), Some(_)) = (other, &server.cluster) else {
        return Ok(());
    };
    let text = format!(
        "a node of a cluster: expected clients of Redis and memcached, found a listener for \
         clients of {} at {address}",
        protocol.system()
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Returns the addresses as they are logged.
fn addresses(listeners: &[Listener], admin: &[Address]) -> log::Addresses {
    let list = |addresses: Vec<&Address>| {
        addresses.into_iter().map(Address::to_string).collect::<Vec<_>>().join(" ")
    };
    let of = |system: &str| {
        let of_system = listeners.iter().filter(|listener| listener.protocol.system() == system);
        list(of_system.map(|listener| &listener.address).collect())
    };
    log::Addresses {
        resp: of("Redis"),
        memcache: of("memcached"),
        pmc: of("poor-man's-cache"),
        mrcache: of("mrcache"),
        admin: list(admin.iter().collect()),
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.common.stop();
        // [`wait`](Self::wait) returns the result.
        let _ = self.join();
    }
}
