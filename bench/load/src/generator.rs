//! The event loop of one generator thread: it sends batches, counts replies, and sends the next
//! batches.

use crate::address::Address;
use crate::batches::Batches;
use crate::cpu::{self, Usage};
use crate::error::{Error, Trouble};
use crate::pace::Pace;
use crate::replies::{Counts, Scanner};
use crate::ring::{Handler, Ring};
use hdrhistogram::Histogram;
use nuthatch_bench::Random;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum time to wait for the replies to a batch.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which timeouts and the stop flag are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The measurements of one thread.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) elapsed: Duration,
    pub(crate) requests: u64,
    pub(crate) counts: Counts,
    /// Time from sending a batch, or since it was due, to its last reply, in nanoseconds.
    pub(crate) latencies: Histogram<u64>,
    /// Processor time of this thread, with nanosecond resolution.
    pub(crate) busy: Duration,
    pub(crate) usage: Usage,
    /// Processor time of the server, if its process is known.
    pub(crate) server: Option<Usage>,
}

/// The connections of one thread to one server.
pub(crate) struct Generator<'a> {
    ring: Ring,
    flow: Flow<'a>,
    address: &'a Address,
    stop: &'a AtomicBool,
}

/// The state of the batches, separate from the sockets.
struct Flow<'a> {
    batches: &'a Batches,
    next: Next,
    connections: Vec<Connection>,
    /// The number of the first connection, for error messages.
    first: usize,
    /// The time of the last event.
    now: Instant,
    /// The time of the last timeout check.
    last_check: Instant,
    /// When connections send; at once if there is no pace.
    pace: Option<Pace>,
    /// Connections whose next batch is queued. Its latency is measured from the next wait, or since
    /// it was due.
    starting: Vec<(usize, Option<Instant>)>,
    /// Number of connections that await replies.
    waiting: usize,
    requests: u64,
    counts: Counts,
    latencies: Histogram<u64>,
}

/// The order in which connections send batches.
enum Next {
    /// A connection sends the batch after its last one, cyclically.
    Following,
    /// A connection sends the first batch that is unsent, until all are sent.
    Unsent(Range<usize>),
    /// Connections send no further batches.
    None,
}

struct Connection {
    batch: usize,
    /// Replies to the current batch so far.
    counts: Counts,
    scanner: Scanner,
    sent: Instant,
    is_waiting: bool,
}

impl<'a> Generator<'a> {
    /// Connects to a server. `numbers` are the numbers of the connections.
    pub(crate) fn connect(
        address: &'a Address,
        batches: &'a Batches,
        numbers: Range<usize>,
        stop: &'a AtomicBool,
    ) -> Result<Self, Error> {
        let mut ring = Ring::new(Arc::clone(batches.bytes()), numbers.len())?;
        let mut random = Random::new(numbers.start as u64);
        let now = Instant::now();
        let mut connections = Vec::with_capacity(numbers.len());
        for number in numbers.clone() {
            let connected = address.connect();
            ring.add(connected.map_err(|source| Error::Connect {
                connection: number,
                address: address.clone(),
                source,
            })?)?;
            connections.push(Connection {
                batch: random.below(batches.count() as u32) as usize,
                counts: Counts::default(),
                scanner: Scanner::default(),
                sent: now,
                is_waiting: false,
            });
        }
        let flow = Flow {
            batches,
            next: Next::None,
            connections,
            first: numbers.start,
            now,
            last_check: now,
            pace: None,
            starting: Vec::new(),
            waiting: 0,
            requests: 0,
            counts: Counts::default(),
            latencies: no_latencies()?,
        };
        Ok(Self { ring, flow, address, stop })
    }

    /// Sends batches cyclically, and measures after `warmup`. With an interval, each connection
    /// sends a batch in each interval.
    pub(crate) fn measure(
        &mut self,
        interval: Option<Duration>,
        (warmup, measured): (Duration, Duration),
        server: Option<u32>,
    ) -> Result<Tally, Error> {
        self.flow.next = Next::Following;
        match interval {
            Some(interval) => {
                // A thread wakes 50 us late by default.
                cpu::wake_in_time()?;
                let count = self.flow.connections.len();
                self.flow.pace = Some(Pace::new(interval, count, Instant::now()));
            }
            None => self.start_all()?,
        }
        self.run_until(Instant::now() + warmup)?;
        let server_usage = || server.map(Usage::of_process).transpose();
        let server_before = server_usage()?;
        let usage_before = Usage::of_this_thread()?;
        let busy_before = cpu::time_of_this_thread();
        let start = Instant::now();
        (self.flow.requests, self.flow.counts) = (0, Counts::default());
        self.flow.latencies.reset();
        self.run_until(start + measured)?;
        while self.flow.requests == 0 {
            self.tick()?; // a measurement contains at least one batch
        }
        let tally = Tally {
            elapsed: start.elapsed(),
            requests: self.flow.requests,
            counts: self.flow.counts,
            latencies: std::mem::replace(&mut self.flow.latencies, no_latencies()?),
            busy: cpu::time_of_this_thread().saturating_sub(busy_before),
            usage: Usage::of_this_thread()?.since(usage_before),
            server: server_usage()?.zip(server_before).map(|(after, before)| after.since(before)),
        };
        // Awaits the pending replies, so that they do not load the server during other
        // measurements.
        (self.flow.next, self.flow.pace) = (Next::None, None);
        self.await_pending()?;
        Ok(tally)
    }

    /// Sends every batch once, and returns the counts of the replies.
    pub(crate) fn send_all(&mut self) -> Result<Counts, Error> {
        self.flow.next = Next::Unsent(0..self.flow.batches.count());
        self.start_all()?;
        self.await_pending()?;
        Ok(self.flow.counts)
    }

    fn start_all(&mut self) -> Result<(), Error> {
        for connection in 0..self.flow.connections.len() {
            self.start(connection, None)?;
        }
        Ok(())
    }

    fn start(&mut self, connection: usize, due: Option<Instant>) -> Result<(), Error> {
        if let Some(part) = self.flow.start(connection, due) {
            self.ring.send(connection, part)?;
        }
        Ok(())
    }

    fn run_until(&mut self, end: Instant) -> Result<(), Error> {
        while self.flow.now < end {
            self.tick()?;
        }
        Ok(())
    }

    fn await_pending(&mut self) -> Result<(), Error> {
        while self.flow.waiting > 0 {
            self.tick()?;
        }
        Ok(())
    }

    /// Executes one iteration of the event loop: submits, waits and handles events.
    fn tick(&mut self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let mut at_most = CHECK_INTERVAL;
        if self.flow.pace.is_some() {
            let now = Instant::now();
            while let Some(at) = self.flow.pace.as_mut().and_then(|pace| pace.next_due(now)) {
                self.start(at, None)?;
            }
            at_most = self.flow.pace.as_ref().map_or(at_most, |pace| pace.time_to_next(at_most));
        }
        self.flow.sending(Instant::now());
        self.ring.wait(at_most)?;
        self.flow.now = Instant::now();
        let done = self.ring.dispatch(&mut self.flow).and_then(|()| self.flow.check_timeouts());
        done.map_err(|trouble| trouble.at(self.address))
    }
}

impl Flow<'_> {
    /// Returns the next batch of a connection and marks the connection as waiting for replies.
    /// `due` is since when the batch is due, if replies were late.
    fn start(&mut self, at: usize, due: Option<Instant>) -> Option<Range<usize>> {
        let connection = &mut self.connections[at];
        connection.batch = match &mut self.next {
            Next::Following => (connection.batch + 1) % self.batches.count(),
            Next::Unsent(unsent) => unsent.next()?,
            Next::None => return None,
        };
        connection.counts = Counts::default();
        connection.is_waiting = true;
        self.waiting += 1;
        self.starting.push((at, due));
        Some(self.batches.get(connection.batch).part.clone())
    }

    /// Starts the latency clocks of the batches that are about to be sent.
    fn sending(&mut self, now: Instant) {
        for (at, due) in self.starting.drain(..) {
            self.connections[at].sent = due.unwrap_or(now);
        }
    }

    /// Fails if a connection has waited for its replies for longer than [`REPLY_TIMEOUT`]. The
    /// check covers all connections, so it runs only once per interval.
    fn check_timeouts(&mut self) -> Result<(), Trouble> {
        if self.now.saturating_duration_since(self.last_check) < CHECK_INTERVAL {
            return Ok(());
        }
        self.last_check = self.now;
        let silent = |connection: &Connection| {
            connection.is_waiting
                && self.now.saturating_duration_since(connection.sent) > REPLY_TIMEOUT
        };
        match self.connections.iter().position(silent) {
            Some(at) => {
                let Connection { batch, counts, .. } = &self.connections[at];
                let (seconds, count) = (REPLY_TIMEOUT.as_secs(), counts.all());
                let replies = self.batches.get(*batch).replies;
                let what =
                    format!("after {seconds} s, {count} of a batch's {replies} replies have come");
                Err(self.trouble(at, what))
            }
            None => Ok(()),
        }
    }

    fn trouble(&self, at: usize, what: String) -> Trouble {
        Trouble::Connection { connection: self.first + at, what }
    }
}

impl Handler for Flow<'_> {
    type Error = Trouble;

    fn received(&mut self, at: usize, bytes: &[u8]) -> Result<Option<Range<usize>>, Trouble> {
        let connection = &mut self.connections[at];
        let counts = connection.scanner.scan(&self.batches.heads, bytes);
        let counts = counts.map_err(|e| Trouble::unexpected(self.first + at, &e))?;
        connection.counts.add_all(&counts);
        let batch = self.batches.get(connection.batch);
        let count = connection.counts.all();
        if count < batch.replies {
            return Ok(None);
        }
        if count > batch.replies || !connection.is_waiting || !connection.scanner.is_at_an_end() {
            let replies = batch.replies;
            return Err(
                self.trouble(at, format!("more came than the {replies} replies of a batch"))
            );
        }
        connection.is_waiting = false;
        self.waiting -= 1;
        self.requests += batch.requests;
        self.counts.add_all(&connection.counts);
        let latency = self.now.saturating_duration_since(connection.sent);
        self.latencies.saturating_record(latency.as_nanos() as u64);
        let Some(pace) = &mut self.pace else { return Ok(self.start(at, None)) };
        let due = pace.after_replies(at, self.now);
        Ok(due.and_then(|due| self.start(at, Some(due))))
    }

    fn opened(&mut self, _: usize) {}

    fn closed(&mut self, at: usize, cause: Option<io::Error>) -> Result<(), Trouble> {
        let Connection { batch, counts, .. } = &self.connections[at];
        let (count, replies) = (counts.all(), self.batches.get(*batch).replies);
        let how = cause.map_or("the server closed it".into(), |error| error.to_string());
        let what = format!("{how} after {count} of a batch's {replies} replies");
        Err(self.trouble(at, what))
    }
}

/// Returns an empty histogram from one nanosecond to one minute with three significant digits.
fn no_latencies() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(io::Error::other)
}
