//! A running server: its threads, from the first to listen to the last to stop.

use crate::address::{Address, SocketFiles};
use crate::admin::{Admin, Listeners, Told};
use crate::commands::Server;
use crate::facts::facts;
use crate::journal;
use crate::listener::{Listener, Listening, Protocol, listen};
use crate::reactor::Reactors;
use crate::tls::Tls;
use crate::worker::{Common, Worker};
use nuthatch_cache::{Ahead, Cache, Eviction};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// What to serve, and where.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where clients connect, and what they speak there.
    pub listeners: Vec<Listener>,
    /// Where `/metrics` is told, over HTTP.
    pub admin: Vec<Address>,
    /// Threads, each with connections of its own.
    pub threads: usize,
    /// What threads wait with.
    pub reactors: Reactors,
    /// What listeners with TLS need.
    pub tls: Option<Tls>,
}

impl Options {
    /// One thread that listens at these places.
    pub fn new(listeners: Vec<Listener>) -> Self {
        Self { listeners, admin: Vec::new(), threads: 1, reactors: Reactors::Auto, tls: None }
    }

    /// With `/metrics` at these places.
    #[must_use]
    pub fn admin(self, admin: Vec<Address>) -> Self {
        Self { admin, ..self }
    }

    /// With so many threads.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Whose threads wait with these.
    #[must_use]
    pub fn reactors(self, reactors: Reactors) -> Self {
        Self { reactors, ..self }
    }

    /// With TLS for those listeners that want it.
    #[must_use]
    pub fn tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }
}

/// A server that runs. It stops when this is dropped.
#[derive(Debug)]
pub struct Running {
    common: Arc<Common>,
    listeners: Vec<Listener>,
    admin_addresses: Vec<Address>,
    admin: Option<Admin>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    files: SocketFiles,
    /// So that no request waits for memory that the system must zero first.
    _ahead: Ahead,
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Common>);

impl Stopper {
    /// Asks all threads to stop. They answer what they are at, and go.
    pub fn stop(&self) {
        journal::stopping();
        self.0.stop();
    }
}

impl Running {
    /// Starts to serve a cache to anybody who connects.
    pub fn start(cache: Arc<Cache>, options: &Options) -> io::Result<Self> {
        Self::serve(Server::new(cache), options)
    }

    /// Starts to serve, with settings and users as they are.
    pub fn serve(mut server: Server, options: &Options) -> io::Result<Self> {
        if options.tls.is_none() && options.listeners.iter().any(|listener| listener.tls) {
            let text = "a listener wants TLS, which needs a certificate and a key";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let reactor = options.reactors.choose()?;
        let mut files = SocketFiles::default();
        let (sockets, listeners) = listen(&options.listeners, options.threads, &mut files)?;
        let admin = Listeners::bind(&options.admin)?;
        let admin_addresses = admin.addresses.clone();
        server.event_loop = reactor.name();
        server.evicts = server.cache.eviction() != Eviction::None;
        let mut resp = listeners.iter().filter(|one| one.protocol == Protocol::Resp);
        server.port = resp.find_map(|one| one.address.port()).unwrap_or(0);
        server.facts.extend(facts(&listeners, options.threads));
        let ahead = Ahead::start(&server.cache)?;
        let mut running = Self {
            common: Arc::new(Common::new(server, options, reactor)),
            listeners,
            admin_addresses,
            admin: None,
            threads: Vec::new(),
            files,
            _ahead: ahead,
        };
        for (number, listening) in sockets.into_iter().enumerate() {
            running.spawn(number, listening)?;
        }
        if !options.admin.is_empty() {
            let told: Arc<dyn Told> = Arc::<Common>::clone(&running.common);
            running.admin = Some(Admin::start(admin, &told)?);
        }
        let Self { listeners, admin_addresses, .. } = &running;
        journal::started(options.threads, listeners, admin_addresses, reactor.name());
        Ok(running)
    }

    fn spawn(&mut self, number: usize, listeners: Vec<Listening>) -> io::Result<()> {
        let common = Arc::clone(&self.common);
        let (ready, is_ready) = mpsc::channel();
        let name = format!("nuthatch-{number}");
        let thread = thread::Builder::new().name(name).spawn(move || {
            let mut worker = match Worker::new(&common, listeners) {
                Ok(worker) => worker,
                Err(error) => {
                    // Whoever starts us is waiting.
                    let _ = ready.send(Err(error));
                    return Ok(());
                }
            };
            let _ = ready.send(Ok(()));
            let ended = worker.run();
            if let Err(error) = &ended {
                journal::thread_failed(number, error);
            }
            // One that fails takes the others along: half a server is none.
            common.stop();
            ended
        })?;
        self.threads.push(thread);
        is_ready.recv().map_err(|_| io::Error::other("a thread did not start"))?
    }

    /// Where clients connect, with the ports that were free.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Where `/metrics` is told, with the ports that were free.
    pub fn admin(&self) -> &[Address] {
        &self.admin_addresses
    }

    /// What its threads wait with: `io_uring` or `epoll`.
    pub fn reactor(&self) -> &'static str {
        self.common.reactor.name()
    }

    /// What stops this server, from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.common))
    }

    /// Waits until all threads have stopped. The first error that ended one is answered.
    pub fn wait(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        let was_running = !self.threads.is_empty();
        for thread in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread died")));
            result = result.and(ended);
        }
        // Whoever asks is told that it stops until it has.
        self.admin = None;
        if was_running {
            journal::stopped();
        }
        self.files.remove();
        result
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.common.stop();
        // Whoever wants to know calls `wait`.
        let _ = self.join();
    }
}
