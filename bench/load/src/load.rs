//! A whole run: distributes the connections over threads and combines their results.

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

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Load {
    /// Address of the server.
    pub address: Address,
    /// The requests to send.
    pub workload: Workload,
    /// Number of connections; at least one for each thread.
    pub connections: usize,
    /// Requests in a second, over all connections; as many as possible without it.
    pub rate: Option<f64>,
    /// Number of sending threads; at least one.
    pub threads: usize,
    /// The core of the first thread. Each following thread runs on the next core.
    pub core_number: Option<usize>,
    /// Duration of the load before the measurement.
    pub warmup: Duration,
    /// Duration of the measurement.
    pub measured: Duration,
    /// Process of the server, if its processor time and memory are reported.
    pub server_pid: Option<u32>,
}

/// The requests of a workload, generated before the clock starts.
#[derive(Debug)]
pub struct Requests(Batches);

impl Requests {
    /// Generates the requests of a workload. The result is the same in every run.
    pub fn of(workload: &Workload) -> Self {
        Self::of_round(workload, 0)
    }

    /// Generates the requests of a round: other ones than those of other rounds, with the same
    /// distribution.
    pub(crate) fn of_round(workload: &Workload, round: u64) -> Self {
        Self(Batches::drawn(workload, SEED + round))
    }
}

impl Load {
    /// Checks the settings.
    pub fn check(&self) -> Result<(), Error> {
        let Workload { protocol, keys, value_bytes, pipeline, .. } = self.workload;
        let max_value_bytes = protocol.max_value_bytes();
        let wrong = [
            (keys == 0, "at least one key is needed".into()),
            (value_bytes == 0, "values have one byte at least".into()),
            (
                value_bytes > max_value_bytes,
                format!("values of {protocol} have at most {max_value_bytes} bytes"),
            ),
            (pipeline == 0, "a batch has one request at least".into()),
            (
                pipeline.saturating_mul(value_bytes) > MAX_BATCH_BYTES
                    || pipeline > MAX_BATCH_REQUESTS,
                format!("{pipeline} requests with {value_bytes} bytes are too many for a batch"),
            ),
            (
                self.rate.is_some_and(|rate| !(MIN_RATE..=MAX_RATE).contains(&rate)),
                format!("a rate is from {MIN_RATE} to {MAX_RATE:e} requests in a second"),
            ),
            (self.threads == 0, "at least one thread is needed".into()),
            (self.connections < self.threads, "each thread needs a connection".into()),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, what)) => Err(Error::Usage(what)),
            None => Ok(()),
        }
    }

    /// Stores every key once. Fails unless the server acknowledges each.
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

    /// Requests one key, and waits for the reply, which may be a hit or a miss.
    pub fn greet(&self, stop: &AtomicBool) -> Result<(), Error> {
        let batches = Batches::greeting(&self.workload);
        Generator::connect(&self.address, &batches, 0..1, stop)?.send_all()?;
        Ok(())
    }

    /// Connects to the server and closes the connection.
    pub(crate) fn reach(&self) -> Result<(), Error> {
        let connected = self.address.connect();
        let address = self.address.clone();
        connected.map(drop).map_err(|source| Error::Connect { connection: 0, address, source })
    }

    /// Loads the server and returns the report.
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
        // Waits even after a failure, since the other threads wait at the same barrier.
        ready.wait();
        let server = self.server_pid.filter(|_| at == 0);
        connected?.measure(self.interval(), (self.warmup, self.measured), server)
    }

    /// Returns the interval between two batches of a connection, if there is a rate.
    fn interval(&self) -> Option<Duration> {
        let batch = (self.workload.pipeline * self.connections) as f64;
        self.rate.map(|rate| Duration::from_secs_f64(batch / rate))
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

    /// Returns the numbers of a thread's connections.
    fn connections_of(&self, thread: usize) -> Range<usize> {
        let first = |thread| self.connections * thread / self.threads;
        first(thread)..first(thread + 1)
    }
}

/// Maximum length and number of requests in a batch, which bound the memory of prepared batches.
const MAX_BATCH_BYTES: usize = 64 << 20;
const MAX_BATCH_REQUESTS: usize = 1 << 20;

/// The limits of a rate, in requests in a second.
const MIN_RATE: f64 = 1.0;
const MAX_RATE: f64 = 1e9;

/// The seed of all runs, plus the number of the round.
const SEED: u64 = 20_000_003;

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
