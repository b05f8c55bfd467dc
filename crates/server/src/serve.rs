//! A running server: its threads, from the first to listen to the last to stop.

use crate::address::Address;
use crate::commands::Server;
use crate::facts::facts;
use crate::listener::{Listener, Listening, Protocol, listen};
use crate::worker::{Common, Worker};
use nuthatch_cache::{Cache, Eviction};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients connect, and what they speak there.
    pub listeners: Vec<Listener>,
    /// Threads, each with connections of its own.
    pub threads: usize,
}

/// A server that runs. It stops when this is dropped.
#[derive(Debug)]
pub struct Running {
    common: Arc<Common>,
    listeners: Vec<Listener>,
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
    /// Starts to serve a cache to anybody who connects.
    pub fn start(cache: Arc<Cache>, options: &Options) -> io::Result<Self> {
        Self::serve(Server::new(cache), options)
    }

    /// Starts to serve, with settings and users as they are.
    pub fn serve(mut server: Server, options: &Options) -> io::Result<Self> {
        let (sockets, listeners) = listen(&options.listeners, options.threads)?;
        server.evicts = server.cache.eviction() != Eviction::None;
        let mut resp = listeners.iter().filter(|one| one.protocol == Protocol::Resp);
        server.port = resp.find_map(|one| one.address.port()).unwrap_or(0);
        server.facts.extend(facts(&listeners, options.threads));
        let common = Arc::new(Common::new(server, options.threads));
        let paths = listeners.iter().filter_map(|listener| match &listener.address {
            Address::Unix(path) => Some(path.clone()),
            Address::Tcp(_) => None,
        });
        let paths = paths.collect();
        let mut running = Self { common, listeners, threads: Vec::new(), paths };
        for (number, listeners) in sockets.into_iter().enumerate() {
            running.spawn(number, listeners)?;
        }
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
