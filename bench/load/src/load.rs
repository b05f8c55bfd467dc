//! A whole run: every thread its connections, and what they saw together.

use crate::address::Address;
use crate::batches::{Batches, Work, Workload};
use crate::cpu;
use crate::error::Error;
use crate::generator::{Generator, Tally};
use crate::report::Report;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

/// How a server is loaded.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where the server is.
    pub address: Address,
    /// What is sent.
    pub workload: Workload,
    /// How many connections there are; at least one for each thread.
    pub connections: usize,
    /// How many threads send; at least one.
    pub threads: usize,
    /// The core of the first thread; the next ones have those that follow.
    pub core_number: Option<usize>,
    /// How long the server is loaded before anything is measured.
    pub warmup: Duration,
    /// How long it is measured.
    pub measured: Duration,
    /// The process of the server, if its time and memory shall be told.
    pub server_pid: Option<u32>,
}

/// The requests of a workload, made before any clock starts.
#[derive(Debug)]
pub struct Requests(Batches);

impl Requests {
    /// The same requests for the same workload, every time.
    pub fn of(workload: &Workload) -> Self {
        Self(Batches::drawn(workload, SEED))
    }
}

impl Load {
    /// Refuses what cannot be done.
    pub fn check(&self) -> Result<(), Error> {
        let Workload { protocol, keys, value_bytes, pipeline, .. } = self.workload;
        let most = protocol.most_value_bytes();
        let wrong = [
            (keys == 0, "at least one key is needed".into()),
            (value_bytes == 0, "values have one byte at least".into()),
            (value_bytes > most, format!("values of {protocol} have at most {most} bytes")),
            (pipeline == 0, "a batch has one request at least".into()),
            (
                pipeline.saturating_mul(value_bytes) > MOST_BATCH_BYTES
                    || pipeline > MOST_BATCH_REQUESTS,
                format!("{pipeline} requests with {value_bytes} bytes are too many for a batch"),
            ),
            (self.threads == 0, "at least one thread is needed".into()),
            (self.connections < self.threads, "each thread needs a connection".into()),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, what)) => Err(Error::Usage(what)),
            None => Ok(()),
        }
    }

    /// Stores every key once. Fails unless every reply says that it was stored.
    pub fn fill(&self, stop: &AtomicBool) -> Result<(), Error> {
        self.check()?;
        self.on_own_thread(|| {
            let mut first = 0;
            while first < self.workload.keys {
                let (batches, next) = Batches::filling(&self.workload, first);
                let connections = 0..self.connections.min(batches.count());
                let mut generator = Generator::connect(&self.address, &batches, connections, stop)?;
                generator.send_all()?;
                first = next;
            }
            Ok(())
        })
    }

    /// Asks for one key, and waits for the answer, whether it is a hit or a miss.
    pub fn greet(&self, stop: &AtomicBool) -> Result<(), Error> {
        let batches = Batches::greeting(&self.workload);
        Generator::connect(&self.address, &batches, 0..1, stop)?.send_all()?;
        Ok(())
    }

    /// Connects, and no more.
    pub(crate) fn reach(&self) -> Result<(), Error> {
        let connected = self.address.connect();
        let address = self.address.clone();
        connected.map(drop).map_err(|source| Error::Connect { connection: 0, address, source })
    }

    /// Loads the server and tells how it did.
    pub fn run(&self, requests: &Requests, stop: &AtomicBool) -> Result<Report, Error> {
        self.check()?;
        let Requests(batches) = requests;
        let ready = Barrier::new(self.threads);
        let results: Vec<_> = thread::scope(|scope| {
            let ready = &ready;
            let thread = |at| scope.spawn(move || self.run_thread(at, batches, ready, stop));
            let threads: Vec<_> = (0..self.threads).map(thread).collect();
            threads.into_iter().map(joined).collect()
        });
        let tallies = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let resident_bytes = self.server_pid.map(cpu::resident_bytes).transpose()?;
        Ok(Report::of(&tallies, self.workload.work != Work::Set, resident_bytes))
    }

    fn run_thread(
        &self,
        at: usize,
        batches: &Batches,
        ready: &Barrier,
        stop: &AtomicBool,
    ) -> Result<Tally, Error> {
        let connected = self.pin(at).and_then(|()| {
            Generator::connect(&self.address, batches, self.connections_of(at), stop)
        });
        // Also after a failure: the others wait.
        ready.wait();
        let server = self.server_pid.filter(|_| at == 0);
        connected?.measure(self.warmup, self.measured, server)
    }

    fn on_own_thread<T: Send>(
        &self,
        run: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        thread::scope(|scope| joined(scope.spawn(|| self.pin(0).and_then(|()| run()))))
    }

    fn pin(&self, thread: usize) -> Result<(), Error> {
        Ok(self.core_number.map_or(Ok(()), |first| cpu::pin(first + thread))?)
    }

    /// The connections of a thread, by their numbers.
    fn connections_of(&self, thread: usize) -> Range<usize> {
        let first = |thread| self.connections * thread / self.threads;
        first(thread)..first(thread + 1)
    }
}

/// What requests and replies of a batch may hold, so that prepared batches fit into memory.
const MOST_BATCH_BYTES: usize = 64 << 20;
const MOST_BATCH_REQUESTS: usize = 1 << 20;

/// The same keys in every run.
const SEED: u64 = 20_000_003;

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
