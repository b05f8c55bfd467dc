//! Reads inputs, parses them on several threads and gives their rows to a writer, in order.
//!
//! The calling thread cuts chunks, hands them out, takes the batches back in the order of the
//! chunks and appends them. A bounded number of chunks is on its way at any time. A batch that is
//! full before its chunk ends comes back with the rest of the chunk, which is handed out again
//! before anything else is appended: so memory stays bounded however many rows a chunk becomes.
//! Because errors come back in the same order, the first one is the earliest of the input, whatever
//! the number of threads.

use super::error::{Error, RowError};
use super::open::{Format, Place};
use super::options::Options;
use super::rows::{BatchSink, Origin};
use super::source::{Chunk, Parser, Rooms, Source};
use nuthatch_snapshot::{Batch, Writer};
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Chunks on their way for each thread, the one it works on included.
const IN_FLIGHT_EACH: usize = 2;
/// Memory that a chunk on its way takes: its text and its rows, at most in usual cases.
const CHUNK_MEMORY: usize = 5 << 19;

/// How far reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Bytes read from all inputs.
    pub bytes: u64,
    /// Rows given to the writer.
    pub rows: u64,
}

/// The inputs of a snapshot.
#[derive(Debug)]
pub struct Inputs {
    places: Vec<(Place, Format)>,
    options: Options,
    len: Option<u64>,
}

impl Inputs {
    /// Checks that the inputs are there and that the options fit them.
    pub fn new(paths: &[PathBuf], options: Options) -> Result<Self, Error> {
        const MOST: usize = 1 << 16;
        if paths.len() > MOST {
            return Err(Error::Usage(format!(
                "expected at most {MOST} inputs, found {}",
                paths.len()
            )));
        }
        let (mut places, mut len) = (Vec::new(), Some(0));
        for path in paths {
            let place = Place::new(path);
            let format = options.format_of(path, &place)?;
            len = place.len()?.and_then(|more| Some(len? + more));
            places.push((place, format));
        }
        let formats: Vec<_> = places.iter().map(|(_, format)| *format).collect();
        options.fit(&formats)?;
        Ok(Self { places, options, len })
    }

    /// Returns the name of the input that is the same file as an output, under any of its names.
    pub fn same_file(&self, output: &Path) -> Option<&str> {
        let found = output.metadata().ok()?;
        let mut places = self.places.iter().map(|(place, _)| place);
        places.find(|place| place.is_file(found.dev(), found.ino())).map(|place| &place.name[..])
    }

    /// The bytes of all inputs, as they lie on the disk, where that is known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.len
    }

    /// Where a row came from, as `file:line`.
    pub fn place(&self, origin: u64) -> String {
        let Origin { input, line } = Origin::unpack(origin);
        let name = self.places.get(usize::from(input)).map_or("?", |(place, _)| &place.name);
        format!("{name}:{line}")
    }

    /// Memory that reading takes besides the writer's.
    pub fn memory(threads: usize) -> usize {
        threads.max(1) * IN_FLIGHT_EACH * CHUNK_MEMORY
    }

    /// Gives all rows to the writer, in order, and tells `report` how far it is.
    pub fn feed(
        &self,
        writer: &mut Writer,
        threads: usize,
        mut report: impl FnMut(Step),
    ) -> Result<(), Error> {
        let threads = threads.max(1);
        let (jobs, queue) = channel();
        let queue = Mutex::new(queue);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| work(&queue));
            }
            let mut feed = Feed {
                inputs: self,
                next_input: 0,
                source: None,
                jobs,
                on_way: VecDeque::new(),
                buffer: Vec::new(),
                read: Arc::default(),
            };
            feed.run(writer, threads * IN_FLIGHT_EACH, &mut report)
        })
    }

    pub(crate) fn places(&self) -> &[(Place, Format)] {
        &self.places
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    fn name(&self, input: u16) -> &str {
        &self.places[usize::from(input)].0.name
    }
}

/// A chunk to be parsed, and the batch for its rows.
struct Job {
    parser: Arc<Parser>,
    input: u16,
    chunk: Chunk,
    batch: Batch,
    reply: SyncSender<Parsed>,
}

/// A chunk that is parsed, or whose batch is full.
struct Parsed {
    parser: Arc<Parser>,
    input: u16,
    chunk: Chunk,
    batch: Batch,
    result: Result<(), RowError>,
}

/// Parses chunks until no more come.
fn work(queue: &Mutex<Receiver<Job>>) {
    let mut rooms = Rooms::default();
    loop {
        let job = match queue.lock() {
            Ok(queue) => queue.recv(),
            // Another thread panicked, which the scope reports.
            Err(_) => return,
        };
        let Ok(Job { parser, input, mut chunk, batch, reply }) = job else { return };
        let mut sink = BatchSink { batch, input };
        let result = parser.parse(&mut chunk, &mut rooms, &mut sink);
        // Nobody waits for the reply when an earlier chunk was wrong.
        let _ = reply.send(Parsed { parser, input, chunk, batch: sink.batch, result });
    }
}

/// The calling thread's side.
struct Feed<'a> {
    inputs: &'a Inputs,
    next_input: usize,
    source: Option<(u16, Source)>,
    jobs: Sender<Job>,
    /// Replies to come, in the order of the chunks.
    on_way: VecDeque<Receiver<Parsed>>,
    /// A chunk's buffer, to be used again.
    buffer: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl Feed<'_> {
    fn run(
        &mut self,
        writer: &mut Writer,
        most: usize,
        report: &mut impl FnMut(Step),
    ) -> Result<(), Error> {
        let (mut rows, mut broken) = (0, None);
        loop {
            while broken.is_none() && self.on_way.len() < most {
                match self.next_chunk() {
                    Ok(Some((parser, input, chunk))) => {
                        let reply = self.hand_out(parser, input, chunk, writer.batch());
                        self.on_way.push_back(reply);
                    }
                    Ok(None) => break,
                    // What was read before comes first, and may be wrong itself.
                    Err(error) => broken = Some(error),
                }
            }
            let Some(reply) = self.on_way.pop_front() else {
                return broken.map_or(Ok(()), Err);
            };
            // A thread that panicked gives no reply; the scope panics in its turn.
            let Ok(parsed) = reply.recv() else { return Ok(()) };
            let Parsed { parser, input, chunk, batch, result } = parsed;
            result.map_err(|error| Error::row(self.inputs.name(input), error))?;
            if chunk.is_done() {
                if let Chunk::Text(chunk) = chunk {
                    self.buffer = chunk.into_buffer();
                }
            } else {
                let reply = self.hand_out(parser, input, chunk, writer.batch());
                self.on_way.push_front(reply);
            }
            rows += batch.len() as u64;
            writer.append(batch)?;
            report(Step { bytes: self.read.load(Ordering::Relaxed), rows });
        }
    }

    fn hand_out(
        &self,
        parser: Arc<Parser>,
        input: u16,
        chunk: Chunk,
        batch: Batch,
    ) -> Receiver<Parsed> {
        let (reply, replies) = sync_channel(1);
        // Fails only when all threads panicked; then no reply comes.
        let _ = self.jobs.send(Job { parser, input, chunk, batch, reply });
        replies
    }

    /// The next chunk of the inputs, one after another.
    fn next_chunk(&mut self) -> Result<Option<(Arc<Parser>, u16, Chunk)>, Error> {
        loop {
            if let Some((input, source)) = &mut self.source {
                if let Some(chunk) = source.next(std::mem::take(&mut self.buffer))? {
                    return Ok(Some((source.parser(), *input, chunk)));
                }
                self.source = None;
            }
            let Some((place, format)) = self.inputs.places.get(self.next_input) else {
                return Ok(None);
            };
            let source = Source::open(place, *format, &self.inputs.options, &self.read)?;
            self.source = Some((self.next_input as u16, source));
            self.next_input += 1;
        }
    }
}
