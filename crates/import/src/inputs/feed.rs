//! Parses inputs on several threads and appends their rows to a writer, in order.
//!
//! The calling thread reads chunks, passes them to the threads that parse, receives the batches in
//! the order of the chunks, and appends them. The number of chunks in flight is bounded. If a batch
//! is full before its chunk ends, it returns with the rest of the chunk, which is passed to a
//! thread again before any other batch is appended. So memory stays bounded, however many rows a
//! chunk has. Errors return in the same order: the first one is the earliest in the input,
//! regardless of the number of threads.

use super::batch_sink::BatchSink;
use super::list::Inputs;
use super::source::{Buffers, Chunk, Parser, Source};
use crate::error::{Error, RowError};
use nuthatch_snapshot::{Batch, Writer};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Maximum number of chunks in flight for each thread, including the one that it parses.
const MAX_IN_FLIGHT_PER_THREAD: usize = 2;
/// Memory of a chunk in flight, in bytes: its text and its rows, in usual cases.
const CHUNK_MEMORY: usize = 5 << 19;

/// The progress of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadProgress {
    /// Bytes read from all inputs, before decompression.
    pub bytes: u64,
    /// Rows appended to the writer.
    pub rows: u64,
}

impl Inputs {
    /// Returns the approximate memory that [`feed`](Self::feed) takes with this number of threads,
    /// in bytes, in addition to the memory of the writer.
    pub fn memory_bytes(threads: usize) -> usize {
        threads.max(1) * MAX_IN_FLIGHT_PER_THREAD * CHUNK_MEMORY
    }

    /// Appends all rows to the writer, in order. Parses with `threads` threads (at least one) and
    /// passes the progress to `report` after each batch, on the calling thread.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`], [`Error::Text`] or [`Error::Format`] if an input cannot be read or is
    /// invalid, and [`Error::Snapshot`] if the writer fails. Rows before the error may have been
    /// appended.
    pub fn feed(
        &self,
        writer: &mut Writer,
        threads: usize,
        mut report: impl FnMut(ReadProgress),
    ) -> Result<(), Error> {
        let threads = threads.max(1);
        let (jobs, queue) = channel();
        let queue = Mutex::new(queue);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| parse_chunks(&queue));
            }
            let mut feed = Feed {
                inputs: self,
                next_input: 0,
                source: None,
                jobs,
                in_flight: VecDeque::new(),
                buffer: Vec::new(),
                read: Arc::default(),
            };
            feed.run(writer, threads * MAX_IN_FLIGHT_PER_THREAD, &mut report)
        })
    }
}

/// A chunk to parse, and the batch for its rows.
struct Job {
    parser: Arc<Parser>,
    input: u16,
    chunk: Chunk,
    batch: Batch,
    reply: SyncSender<Parsed>,
}

/// The outcome of a job: the chunk is parsed, its batch is full, or it is invalid.
struct Parsed {
    parser: Arc<Parser>,
    input: u16,
    chunk: Chunk,
    batch: Batch,
    result: Result<(), RowError>,
}

/// Parses chunks until the queue is closed.
fn parse_chunks(queue: &Mutex<Receiver<Job>>) {
    let mut buffers = Buffers::default();
    loop {
        let job = match queue.lock() {
            Ok(queue) => queue.recv(),
            // Another thread panicked, which the scope reports.
            Err(_) => return,
        };
        let Ok(Job { parser, input, mut chunk, batch, reply }) = job else { return };
        let mut sink = BatchSink { batch, input };
        let result = parser.parse(&mut chunk, &mut buffers, &mut sink);
        // After an error in an earlier chunk, the reply is not received.
        let _ = reply.send(Parsed { parser, input, chunk, batch: sink.batch, result });
    }
}

/// The state of the calling thread.
struct Feed<'a> {
    inputs: &'a Inputs,
    next_input: usize,
    source: Option<(u16, Source)>,
    jobs: Sender<Job>,
    /// The replies for chunks in flight, in the order of the chunks.
    in_flight: VecDeque<Receiver<Parsed>>,
    /// The buffer of a parsed chunk, which the next one reuses.
    buffer: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl Feed<'_> {
    fn run(
        &mut self,
        writer: &mut Writer,
        max_in_flight: usize,
        report: &mut impl FnMut(ReadProgress),
    ) -> Result<(), Error> {
        let (mut rows, mut read_error) = (0, None);
        loop {
            while read_error.is_none() && self.in_flight.len() < max_in_flight {
                match self.next_chunk() {
                    Ok(Some((parser, input, chunk))) => {
                        let reply = self.start_job(parser, input, chunk, writer.batch());
                        self.in_flight.push_back(reply);
                    }
                    Ok(None) => break,
                    // Chunks that were read before come first, and may have errors themselves.
                    Err(error) => read_error = Some(error),
                }
            }
            let Some(reply) = self.in_flight.pop_front() else {
                return read_error.map_or(Ok(()), Err);
            };
            // A thread that panicked sends no reply; the scope then panics, too.
            let Ok(parsed) = reply.recv() else { return Ok(()) };
            let Parsed { parser, input, chunk, batch, result } = parsed;
            result.map_err(|error| Error::row(self.inputs.name(input), error))?;
            if chunk.is_done() {
                if let Chunk::Text(chunk) = chunk {
                    self.buffer = chunk.into_buffer();
                }
            } else {
                let reply = self.start_job(parser, input, chunk, writer.batch());
                self.in_flight.push_front(reply);
            }
            rows += batch.len() as u64;
            writer.append(batch)?;
            report(ReadProgress { bytes: self.read.load(Ordering::Relaxed), rows });
        }
    }

    /// Passes a chunk to the threads. Returns the receiver of the reply.
    fn start_job(
        &self,
        parser: Arc<Parser>,
        input: u16,
        chunk: Chunk,
        batch: Batch,
    ) -> Receiver<Parsed> {
        let (reply, replies) = sync_channel(1);
        // Fails only if all threads panicked; then no reply arrives.
        let _ = self.jobs.send(Job { parser, input, chunk, batch, reply });
        replies
    }

    /// Reads the next chunk of the inputs.
    fn next_chunk(&mut self) -> Result<Option<(Arc<Parser>, u16, Chunk)>, Error> {
        loop {
            if let Some((input, source)) = &mut self.source {
                if let Some(chunk) = source.next(std::mem::take(&mut self.buffer))? {
                    return Ok(Some((source.parser(), *input, chunk)));
                }
                self.source = None;
            }
            let Some((file, format)) = self.inputs.files().get(self.next_input) else {
                return Ok(None);
            };
            let source = Source::open(file, *format, self.inputs.options(), &self.read)?;
            self.source = Some((self.next_input as u16, source));
            self.next_input += 1;
        }
    }
}
