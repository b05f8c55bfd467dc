//! A running server: its threads, from the first to listen to the last to stop.

use crate::address::{Address, SocketFiles};
use crate::admin::{Admin, Listeners};
use crate::commands::Server;
use crate::journal;
use crate::reactor;
use crate::worker::{Common, Worker};
use nuthatch_cache::{Cache, Eviction};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients of Redis connect.
    pub resp: Vec<Address>,
    /// Where `/metrics` is told, over HTTP.
    pub admin: Vec<Address>,
    /// Threads, each with connections of its own.
    pub threads: usize,
}

impl Default for Options {
    /// One thread, which listens nowhere.
    fn default() -> Self {
        Self { resp: Vec::new(), admin: Vec::new(), threads: 1 }
    }
}

/// A server that runs. It stops when this is dropped.
#[derive(Debug)]
pub struct Running {
    common: Arc<Common>,
    resp: Vec<Address>,
    admin_addresses: Vec<Address>,
    admin: Option<Admin>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    files: SocketFiles,
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Common>);

impl Stopper {
    /// Asks all threads to stop. They answer what was received, and go.
    pub fn stop(&self) {
        journal::stopping();
        self.0.stop();
    }
}

impl Running {
    /// Starts to serve a cache.
    pub fn start(cache: Arc<Cache>, options: &Options) -> io::Result<Self> {
        let mut files = SocketFiles::default();
        let (sockets, resp) = listen(&options.resp, options.threads, &mut files)?;
        let listeners = Listeners::bind(&options.admin)?;
        let admin_addresses = listeners.addresses.clone();
        let mut server = Server::new(cache);
        server.evicts = server.cache.eviction() != Eviction::None;
        server.port = resp.iter().find_map(Address::port).unwrap_or(0);
        let common = Arc::new(Common::new(server, options.threads));
        let threads = Vec::new();
        let mut running = Self { common, resp, admin_addresses, admin: None, threads, files };
        for (number, listeners) in sockets.into_iter().enumerate() {
            running.spawn(number, listeners)?;
        }
        if !options.admin.is_empty() {
            running.admin = Some(Admin::start(listeners, &running.common)?);
        }
        let Self { resp, admin_addresses, .. } = &running;
        journal::started(options.threads, resp, admin_addresses, reactor::NAME);
        Ok(running)
    }

    fn spawn(&mut self, number: usize, listeners: Vec<OwnedFd>) -> io::Result<()> {
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

    /// Where clients of Redis connect, with the ports that were free.
    pub fn resp(&self) -> &[Address] {
        &self.resp
    }

    /// Where `/metrics` is told, with the ports that were free.
    pub fn admin(&self) -> &[Address] {
        &self.admin_addresses
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

/// Listens at all addresses, for each thread: its sockets. And the addresses as they are bound.
fn listen(
    addresses: &[Address],
    threads: usize,
    files: &mut SocketFiles,
) -> io::Result<(Vec<Vec<OwnedFd>>, Vec<Address>)> {
    let mut sockets: Vec<Vec<OwnedFd>> = (0..threads).map(|_| Vec::new()).collect();
    let mut all = Vec::new();
    for address in addresses {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
        let (first, bound) = address.listen().map_err(named)?;
        files.note(&bound);
        for sockets in &mut sockets[1..] {
            sockets.push(match address {
                Address::Tcp(_) => bound.listen().map_err(named)?.0,
                // One socket for all: whoever is first gets the connection.
                Address::Unix(_) => first.try_clone()?,
            });
        }
        sockets[0].push(first);
        all.push(bound);
    }
    Ok((sockets, all))
}
