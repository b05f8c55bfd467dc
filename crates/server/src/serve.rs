//! A running server: its threads, from the first to listen to the last to stop.

use crate::address::Address;
use crate::commands::Server;
use crate::reactor::Reactors;
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
    /// Threads, each with connections of its own.
    pub threads: usize,
    /// What threads wait with.
    pub reactors: Reactors,
}

impl Default for Options {
    /// Listens nowhere, with one thread.
    fn default() -> Self {
        Self { resp: Vec::new(), threads: 1, reactors: Reactors::Auto }
    }
}

/// A server that runs. It stops when this is dropped.
#[derive(Debug)]
pub struct Running {
    common: Arc<Common>,
    resp: Vec<Address>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// Sockets in the file system, which go with the server.
    paths: Vec<std::path::PathBuf>,
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Common>);

impl Stopper {
    /// Asks all threads to stop. They answer what was received, and go.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Running {
    /// Starts to serve a cache.
    pub fn start(cache: Arc<Cache>, options: &Options) -> io::Result<Self> {
        let reactor = options.reactors.choose()?;
        let (sockets, resp) = listen(&options.resp, options.threads)?;
        let mut server = Server::new(cache);
        server.evicts = server.cache.eviction() != Eviction::None;
        server.event_loop = reactor.name();
        server.port = resp.iter().find_map(Address::port).unwrap_or(0);
        let common = Arc::new(Common::new(server, options.threads, reactor));
        let paths = resp.iter().filter_map(|address| match address {
            Address::Unix(path) => Some(path.clone()),
            Address::Tcp(_) => None,
        });
        let paths = paths.collect();
        let mut running = Self { common, resp, threads: Vec::new(), paths };
        for (number, listeners) in sockets.into_iter().enumerate() {
            running.spawn(number, listeners)?;
        }
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
        for thread in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread died")));
            result = result.and(ended);
        }
        for path in self.paths.drain(..) {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(path);
        }
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
fn listen(addresses: &[Address], threads: usize) -> io::Result<(Vec<Vec<OwnedFd>>, Vec<Address>)> {
    let mut sockets: Vec<Vec<OwnedFd>> = (0..threads).map(|_| Vec::new()).collect();
    let mut all = Vec::new();
    for address in addresses {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
        let (first, bound) = address.listen().map_err(named)?;
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
