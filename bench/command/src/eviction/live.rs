//! Redis's eviction policies, executed by a Redis server that the benchmark starts.

use super::own::Replayed;
use super::policies::count;
use super::trace::Trace;
use nuthatch_bench::Folder;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The maximum number of requests in a batch, and the bytes after which a batch is sent.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 64 << 10;

/// The maximum time to wait for a reply of the server.
const REPLY_TIMEOUT: Duration = Duration::from_mins(1);

/// The minimum of Redis's setting `maxmemory`, in bytes. With less than its own overhead, Redis
/// rejects all writes.
const MIN_MEMORY: u64 = 2 << 20;

/// A Redis server without persistence, reachable only through a socket in its private folder.
/// Dropping this value stops the server.
pub(crate) struct Redis {
    process: Child,
    stream: BufReader<UnixStream>,
    /// The last line that was read from the socket.
    line: String,
    /// The pipe to which the server writes its log. It stays open while the server runs.
    _log: BufReader<ChildStdout>,
    _folder: Folder,
}

/// The memory limit of the Redis server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The memory that Redis needs to hold this many bytes of keys and values.
    Payload(u64),
    /// A total memory limit in bytes, overhead included.
    Memory(u64),
}

fn wrong(message: impl Into<String>) -> io::Error {
    io::Error::other(message.into())
}

impl Redis {
    /// Starts a server and connects to it.
    pub(crate) fn start(program: &OsStr) -> io::Result<Self> {
        let folder = Folder::create(&std::env::temp_dir()).map_err(|e| wrong(e.to_string()))?;
        let socket = folder.path().join("redis");
        let mut process = Command::new(program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let log = process.stdout.take().map(BufReader::new);
        let mut process = Stopped(Some(process));
        let mut log = log.ok_or_else(|| wrong("the server has no log"))?;
        let (mut line, mut last) = (String::new(), String::new());
        while !line.to_ascii_lowercase().contains("ready to accept connections") {
            last = std::mem::take(&mut line);
            if log.read_line(&mut line)? == 0 {
                return Err(wrong(format!("the server exited during startup: {}", last.trim())));
            }
        }
        drop(last);
        let stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        let stream = BufReader::with_capacity(1 << 16, stream);
        let process = process.0.take().ok_or_else(|| wrong("no process"))?;
        let mut redis = Self { process, stream, line: String::new(), _log: log, _folder: folder };
        // Nothing reads the log from here on, so the server logs only warnings.
        redis.ask(&[b"CONFIG", b"SET", b"loglevel", b"warning"])?;
        Ok(redis)
    }

    /// Looks up every item of a trace, and stores each item that is absent. Reports the number of
    /// completed requests to `tick`.
    pub(crate) fn replay(
        &mut self,
        trace: &Trace,
        policy: &str,
        limit: Limit,
        tick: impl Fn(usize),
    ) -> io::Result<Replayed> {
        self.ask(&[b"CONFIG", b"SET", b"maxmemory-policy", policy.as_bytes()])?;
        let memory = match limit {
            Limit::Payload(bytes) => self.memory_for(trace, bytes)?,
            Limit::Memory(bytes) => bytes,
        };
        let memory = memory.max(MIN_MEMORY).to_string();
        self.ask(&[b"FLUSHALL", b"SYNC"])?;
        self.ask(&[b"CONFIG", b"SET", b"maxmemory", memory.as_bytes()])?;
        let misses = self.read_through(trace, tick)?;
        let there = self.present_items(trace, 0..trace.items.len() as u32)?;
        let held = there.iter().map(|item| trace.items.bytes(*item)).sum();
        Ok(Replayed { misses, held_bytes: held })
    }

    /// Returns the version of the server.
    pub(crate) fn version(&mut self) -> io::Result<String> {
        self.field("server", "redis_version")
    }

    /// Returns the bytes of memory that Redis uses to hold `payload` bytes of keys and values.
    fn memory_for(&mut self, trace: &Trace, payload: u64) -> io::Result<u64> {
        self.ask(&[b"FLUSHALL", b"SYNC"])?;
        self.ask(&[b"CONFIG", b"SET", b"maxmemory", b"0"])?;
        let mut left = payload;
        let fits = (0..trace.items.len() as u32).take_while(|item| {
            let bytes = trace.items.bytes(*item);
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        });
        let items: Vec<u32> = fits.collect();
        let mut writer = Requests::new(trace);
        for batch in items.chunks(BATCH) {
            for item in batch {
                writer.set(*item);
                // Large values are sent in smaller batches, as in the replay.
                if writer.bytes.len() > BATCH_BYTES {
                    self.send(&mut writer)?;
                }
            }
            self.send(&mut writer)?;
        }
        // Each lookup moves a part of the hash table during a resize, so these lookups complete the
        // resize.
        self.present_items(trace, 0..items.len() as u32)?;
        let used = self.field("memory", "used_memory")?;
        used.parse().map_err(|_| wrong(format!("expected used_memory, found {used}")))
    }

    fn read_through(&mut self, trace: &Trace, tick: impl Fn(usize)) -> io::Result<u64> {
        let mut requests = Requests::new(trace);
        let mut misses = 0;
        let mut asked = Vec::new();
        let mut absent = Vec::new();
        for (at, item) in trace.requests.iter().enumerate() {
            requests.touch(*item);
            asked.push(*item);
            count(at, &tick);
            let last = at + 1 == trace.requests.len();
            if asked.len() < BATCH && requests.bytes.len() < BATCH_BYTES && !last {
                continue;
            }
            self.send(&mut requests)?;
            for item in asked.drain(..) {
                // A batch counts a repeated absent item once, since the first miss would have
                // stored it.
                if self.number()? == 0 && !absent.contains(&item) {
                    absent.push(item);
                }
            }
            misses += absent.len() as u64;
            // The absent items are stored before the next batch of lookups.
            absent.drain(..).for_each(|item| requests.set(item));
        }
        self.send(&mut requests)?;
        Ok(misses)
    }

    /// Returns the items in `items` that the server holds.
    fn present_items(
        &mut self,
        trace: &Trace,
        items: std::ops::Range<u32>,
    ) -> io::Result<Vec<u32>> {
        let mut requests = Requests::new(trace);
        let mut there = Vec::new();
        let items: Vec<u32> = items.collect();
        for batch in items.chunks(BATCH * 4) {
            for item in batch {
                requests.exists(*item);
            }
            self.send(&mut requests)?;
            for item in batch {
                if self.number()? == 1 {
                    there.push(*item);
                }
            }
        }
        Ok(there)
    }

    /// Sends a batch, and reads the replies to its `SET` requests, which come first.
    fn send(&mut self, requests: &mut Requests<'_>) -> io::Result<()> {
        self.stream.get_mut().write_all(&requests.bytes)?;
        requests.bytes.clear();
        for _ in 0..std::mem::take(&mut requests.sets) {
            let line = self.line()?;
            // An item that Redis rejects for lack of memory misses again at its next request.
            if line != "+OK" && !line.starts_with("-OOM ") {
                return Err(wrong(format!("expected +OK, found {line}")));
            }
        }
        Ok(())
    }

    /// Reads a reply that must be a number.
    fn number(&mut self) -> io::Result<u64> {
        let line = self.line()?;
        let number = line.strip_prefix(':').and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| wrong(format!("expected a number, found {line}")))
    }

    fn line(&mut self) -> io::Result<&str> {
        self.line.clear();
        // Bounds the length of a line. All expected lines are shorter.
        if self.stream.by_ref().take(1 << 16).read_line(&mut self.line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(self.line.trim_end())
    }

    /// Sends one request, and returns the one line of its reply.
    fn ask(&mut self, words: &[&[u8]]) -> io::Result<String> {
        let mut bytes = Vec::new();
        request(words, &mut bytes);
        self.stream.get_mut().write_all(&bytes)?;
        let line = self.line()?;
        if line.starts_with('-') { Err(wrong(line)) } else { Ok(line.to_owned()) }
    }

    /// Returns a field of a section of the reply to `INFO`.
    fn field(&mut self, section: &str, name: &str) -> io::Result<String> {
        let head = self.ask(&[b"INFO", section.as_bytes()])?;
        let len = head.strip_prefix('$').and_then(|len| len.parse::<u64>().ok());
        let len = len.ok_or_else(|| wrong(format!("expected a text, found {head}")))?;
        let mut text = String::new();
        self.stream.by_ref().take(len + 2).read_to_string(&mut text)?;
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(field, _)| *field == name);
        found.map(|(_, value)| value.to_owned()).ok_or_else(|| wrong(format!("no {name} in INFO")))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // The server has no data to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A process that is killed on drop, unless its owner has taken it out.
struct Stopped(Option<Child>);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A batch of requests. `SET` requests precede all others.
struct Requests<'t> {
    trace: &'t Trace,
    bytes: Vec<u8>,
    sets: usize,
    values: Vec<u8>,
}

impl<'t> Requests<'t> {
    fn new(trace: &'t Trace) -> Self {
        let values = vec![b'v'; trace.items.max_value_bytes()];
        Self { trace, bytes: Vec::new(), sets: 0, values }
    }

    fn set(&mut self, item: u32) {
        let value = &self.values[..self.trace.items.value_bytes(item)];
        request(&[b"SET", self.trace.items.key(item), value], &mut self.bytes);
        self.sets += 1;
    }

    /// Adds a `TOUCH`, which counts as a use of the item but returns no value.
    fn touch(&mut self, item: u32) {
        request(&[b"TOUCH", self.trace.items.key(item)], &mut self.bytes);
    }

    /// Adds an `EXISTS`, which does not count as a use of the item.
    fn exists(&mut self, item: u32) {
        request(&[b"EXISTS", self.trace.items.key(item)], &mut self.bytes);
    }
}

fn request(words: &[&[u8]], out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}
