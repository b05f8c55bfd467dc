//! A connection that sends batches of requests and checks their replies.

use super::model::{Model, Request, append_value, key_text, value_len};
use crate::failure::Failure;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Maximum time to wait for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_mins(1);

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) hits: u64,
    pub(super) writes: u64,
    pub(super) removals: u64,
    pub(super) written_bytes: u64,
}

/// The reason why a batch failed.
pub(super) enum BatchError {
    /// The connection failed.
    Io(io::Error),
    /// A reply is wrong.
    Check(String),
}

impl From<io::Error> for BatchError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::Io(error) => Self::Error(format!("connection to the server: {error}")),
            BatchError::Check(message) => Self::Check(message),
        }
    }
}

/// A connection to the server.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    /// The requests of the batch, and for each the newest version of its key at that time.
    batch: Vec<(Request, u32)>,
    bytes: Vec<u8>,
    value: Vec<u8>,
    start: Instant,
}

impl Client {
    /// Wraps a connection. Times count from `start`.
    pub(super) fn new(stream: TcpStream, start: Instant) -> Result<Self, Failure> {
        stream.set_read_timeout(Some(REPLY_TIMEOUT)).map_err(Failure::of)?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT)).map_err(Failure::of)?;
        let stream = BufReader::with_capacity(1 << 18, stream);
        let (batch, bytes, value) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { stream, batch, bytes, value, start })
    }

    /// Adds a request to the batch.
    pub(super) fn add(&mut self, request: Request, model: &Model) {
        let key = match request {
            Request::Get { key } => {
                append_command(&[b"GET", key_text(key).as_bytes()], &mut self.bytes);
                key
            }
            Request::Remove { key } => {
                append_command(&[b"DEL", key_text(key).as_bytes()], &mut self.bytes);
                key
            }
            Request::Set { key, version, ttl_ms } => {
                self.value.clear();
                append_value(key, version, &mut self.value);
                let (name, ttl) = (key_text(key), ttl_ms.to_string());
                let words = [b"SET", name.as_bytes(), &self.value, b"PX", ttl.as_bytes()];
                append_command(&words[..if ttl_ms == 0 { 3 } else { 5 }], &mut self.bytes);
                key
            }
        };
        self.batch.push((request, model.newest(key)));
    }

    /// Sends the batch. Returns the time of sending, in milliseconds since the start.
    pub(super) fn send(&mut self) -> io::Result<u64> {
        let sent_ms = self.now_ms();
        let sent = self.stream.get_mut().write_all(&self.bytes);
        self.bytes.clear();
        sent.map(|()| sent_ms)
    }

    /// Receives the replies of the batch, checks them and updates the model.
    pub(super) fn receive(
        &mut self,
        sent_ms: u64,
        model: &mut Model,
        counts: &mut Counts,
    ) -> Result<(), BatchError> {
        for (request, newest) in std::mem::take(&mut self.batch) {
            let line = self.line()?;
            let unexpected = || BatchError::Check(format!("{request:?}: the reply is {line:?}"));
            match request {
                Request::Get { key } => {
                    counts.reads += 1;
                    if line == "$-1" || line == "_" {
                        continue;
                    }
                    counts.hits += 1;
                    let len = line.strip_prefix('$').and_then(|len| len.parse().ok());
                    self.read_value(len.ok_or_else(unexpected)?)?;
                    model.check(key, &self.value, sent_ms).map_err(BatchError::Check)?;
                }
                Request::Set { key, version, ttl_ms } if line == "+OK" => {
                    let now_ms = self.now_ms();
                    model.stored(key, version, ttl_ms, now_ms);
                    counts.writes += 1;
                    counts.written_bytes += value_len(key, version) as u64;
                }
                Request::Remove { key } if line == ":0" || line == ":1" => {
                    model.removed(key, newest);
                    counts.removals += 1;
                }
                Request::Set { .. } | Request::Remove { .. } => return Err(unexpected()),
            }
        }
        Ok(())
    }

    /// Returns the reply to `INFO` with a section.
    pub(super) fn info(&mut self, section: &str) -> Result<String, BatchError> {
        append_command(&[b"INFO", section.as_bytes()], &mut self.bytes);
        self.send()?;
        let line = self.line()?;
        let len = line.strip_prefix('$').and_then(|len| len.parse().ok());
        self.read_value(len.ok_or_else(|| BatchError::Check(format!("INFO: {line:?}")))?)?;
        Ok(String::from_utf8_lossy(&self.value).into_owned())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        if line.pop() != Some('\n') || line.pop() != Some('\r') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }

    /// Reads a value and the end of its line.
    fn read_value(&mut self, len: usize) -> io::Result<()> {
        self.value.resize(len + 2, 0);
        self.stream.read_exact(&mut self.value)?;
        self.value.truncate(len);
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

fn append_command(words: &[&[u8]], out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}
