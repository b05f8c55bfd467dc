//! Requests of many connections, executed together.
//!
//! What was received is decoded first, then the keys of all requests are hashed and what they will
//! need of memory is asked for, and only then they are executed, in order: so the waits for memory
//! overlap, instead of coming one after the other.

use crate::commands::{Args, Call, Failure, Found, OUT_OF_MEMORY, Server, execute_found, lookup};
use crate::connection::Connection;
use crate::connections::Connections;
use crate::journal;
use crate::protocol::resp::{Inline, ProtocolError, Reply, Span, Step};
use crate::reactor::{Filled, Number, Uring};
use nuthatch_cache::{KeyHash, Session, Turn};
use std::ops::Range;

/// Requests looked at together.
const MOST: usize = 64;

/// Keys asked for ahead, in requests with many: more than these would not stay in the processor's
/// cache until they are needed.
const KEYS_MOST: usize = 256;

/// Where received bytes lie.
pub(crate) enum Source {
    /// In a buffer of the reactor.
    Buffer(Filled),
    /// With what had come before.
    Inbox(Vec<u8>),
}

impl Source {
    #[inline]
    fn bytes<'a>(&'a self, reactor: &'a Uring) -> &'a [u8] {
        match self {
            Self::Buffer(filled) => reactor.bytes(filled),
            Self::Inbox(bytes) => bytes,
        }
    }
}

/// What one connection has received and not executed.
pub(crate) struct Work {
    pub(crate) connection: Number,
    pub(crate) source: Source,
    /// Bytes decoded.
    decoded: usize,
    /// Bytes executed.
    executed: usize,
}

impl Work {
    pub(crate) fn new(connection: Number, source: Source) -> Self {
        Self { connection, source, decoded: 0, executed: 0 }
    }

    /// What is left to execute.
    pub(crate) fn rest<'a>(&'a self, reactor: &'a Uring) -> &'a [u8] {
        &self.source.bytes(reactor)[self.executed..]
    }
}

enum Request {
    /// Its arguments lie where it does.
    Framed,
    Inline(Box<Inline>),
    Fault(ProtocolError),
}

/// A request that was decoded.
struct Queued {
    work: usize,
    bytes: Range<usize>,
    spans: Range<usize>,
    request: Request,
    found: Option<Found>,
}

/// Requests that are decoded together.
#[derive(Default)]
pub(crate) struct Batch {
    queued: Vec<Queued>,
    spans: Vec<Span>,
    hashes: Vec<KeyHash>,
}

/// What requests are executed with.
pub(crate) struct Scene<'a, 'c> {
    pub(crate) reactor: &'a Uring,
    pub(crate) connections: &'a mut Connections,
    pub(crate) session: &'a mut Session<'c>,
    pub(crate) server: &'a Server,
    /// Whether other threads have sessions.
    pub(crate) shared: bool,
    /// Connections take much memory.
    pub(crate) short_of_memory: bool,
}

impl Batch {
    /// Executes all that was received, as far as it is whole and its connection may go on.
    pub(crate) fn execute_all(&mut self, works: &mut [Work], scene: &mut Scene<'_, '_>) {
        let mut first = 0;
        while first < works.len() {
            self.queued.clear();
            self.spans.clear();
            let mut next = first;
            while next < works.len() && self.decode(next, &mut works[next], scene) {
                next += 1;
            }
            self.execute(works, scene);
            first = next;
        }
    }

    /// Decodes one connection's bytes; false if there are too many requests for one batch.
    fn decode(&mut self, number: usize, work: &mut Work, scene: &mut Scene<'_, '_>) -> bool {
        let Some(connection) = scene.connections.get(work.connection) else { return true };
        let bytes = work.source.bytes(scene.reactor);
        while connection.is_open() && work.decoded < bytes.len() {
            // Whoever logs in first may send longer requests then: one at a time.
            let waits = !connection.trusted && self.queued.iter().any(|one| one.work == number);
            if self.queued.len() >= MOST || waits {
                return false;
            }
            let start = work.decoded;
            let first_span = self.spans.len();
            let step = connection.decoder.next(&bytes[start..], &mut self.spans);
            let (consumed, request) = match step {
                Ok(Step::Request { consumed }) => (consumed, Request::Framed),
                Ok(Step::Inline { consumed, line }) => (consumed, Request::Inline(line)),
                Ok(Step::Empty { consumed }) => {
                    work.decoded += consumed;
                    if !self.extend_last(number, work.decoded) {
                        work.executed = work.decoded;
                    }
                    continue;
                }
                Ok(Step::More { .. }) => break,
                Err(fault) => (bytes.len() - start, Request::Fault(fault)),
            };
            work.decoded += consumed;
            let range = start..start + consumed;
            let spans = first_span..self.spans.len();
            let found = match &request {
                Request::Framed => {
                    lookup(Args::new(&bytes[start..], &self.spans[spans.clone()]).get(0))
                }
                Request::Inline(line) => lookup(Args::new(&line.bytes, &line.args).get(0)),
                Request::Fault(_) => None,
            };
            self.queued.push(Queued { work: number, bytes: range, spans, request, found });
        }
        true
    }

    /// What needs no answer is done with the request before it, if one waits.
    fn extend_last(&mut self, work: usize, end: usize) -> bool {
        let last = self.queued.last_mut().filter(|queued| queued.work == work);
        last.map(|queued| queued.bytes.end = end).is_some()
    }

    /// Hashes the keys of all requests and asks for the memory they will need.
    fn prefetch(&mut self, works: &[Work], reactor: &Uring, server: &Server, turn: &Turn<'_>) {
        self.hashes.clear();
        for queued in &self.queued {
            let Some(found) = queued.found else { continue };
            let bytes = &works[queued.work].source.bytes(reactor)[queued.bytes.clone()];
            let args = Args::new(bytes, &self.spans[queued.spans.clone()]);
            for key in args.keys(found.command.keys) {
                let hash = server.cache.hash(key);
                turn.prefetch(hash);
                self.hashes.push(hash);
                if self.hashes.len() >= KEYS_MOST {
                    break;
                }
            }
        }
        for hash in &self.hashes {
            turn.prefetch_item(*hash);
        }
    }

    fn execute(&mut self, works: &mut [Work], scene: &mut Scene<'_, '_>) {
        if self.queued.is_empty() {
            return;
        }
        let Scene { reactor, connections, session, server, shared, short_of_memory } = scene;
        let mut turn = session.turn();
        self.prefetch(works, reactor, server, &turn);
        for queued in &self.queued {
            let work = &mut works[queued.work];
            let Some(connection) = connections.get(work.connection) else { continue };
            if !connection.is_open() {
                continue;
            }
            let bytes = &work.source.bytes(reactor)[queued.bytes.clone()];
            let args = match &queued.request {
                Request::Framed => Args::new(bytes, &self.spans[queued.spans.clone()]),
                Request::Inline(line) => Args::new(&line.bytes, &line.args),
                Request::Fault(fault) => {
                    journal::request_malformed(connection.client.peer(), fault);
                    connection.refuse(&fault.to_string());
                    continue;
                }
            };
            let exclusive = queued.found.is_some_and(|found| found.command.flags.exclusive);
            if *shared && exclusive {
                turn.be_alone();
            }
            answer(&mut turn, connection, server, (args, queued.found));
            turn.be_with_others();
            work.executed = queued.bytes.end;
            connection.note_answer(server, *short_of_memory);
        }
    }
}

/// Executes one request. When there is no room in this turn, it is tried once more in the next.
#[inline]
fn answer(
    turn: &mut Turn<'_>,
    connection: &mut Connection,
    server: &Server,
    (args, found): (Args<'_>, Option<Found>),
) {
    for renewed in [false, true] {
        let Connection { client, out, .. } = connection;
        let mut call = Call { turn, client, server, args, out };
        if execute_found(&mut call, found) != Err(Failure::Full) {
            return;
        }
        if renewed || !turn.renew() {
            break;
        }
    }
    if let Failure::Answer(text) = OUT_OF_MEMORY {
        Reply::new(&mut connection.out, connection.client.version).error(text.as_bytes());
    }
}
