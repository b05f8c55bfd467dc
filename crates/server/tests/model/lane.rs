//! A connection: sends requests in any pieces, and compares replies as they arrive.

use crate::op::{Ask, Exchange, Op, Part};
use crate::store::Store;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The description of a wrong reply.
type Wrong = String;

/// The time of one wait, and the number of waits before the test fails. One long wait could end
/// before the server can continue if the machine stands still.
const WAIT: Duration = Duration::from_secs(1);
const MAX_WAITS: usize = 60;

/// The first words of a failure because no reply came in time.
pub(crate) const NO_ANSWER: &str = "no answer for a minute";

pub(crate) struct Lane {
    stream: BufReader<UnixStream>,
    ask: Ask,
    exchanges: Vec<Exchange>,
    /// Requests that are not sent yet.
    outbox: Vec<u8>,
}

impl Lane {
    pub(crate) fn new(path: &Path, ask: Ask) -> Self {
        let stream = UnixStream::connect(path).expect("a connection");
        stream.set_read_timeout(Some(WAIT)).expect("a socket");
        Self { stream: BufReader::new(stream), ask, exchanges: Vec::new(), outbox: Vec::new() }
    }

    /// Computes the expected replies with the model, and encodes the requests. The last request has
    /// a reply, so all before it are executed when that reply arrives.
    pub(crate) fn prepare(&mut self, ops: &[Op], keys: [&[u8]; 2], store: &mut Store) {
        for op in ops {
            self.exchanges.push((self.ask)(op, keys, store));
        }
        let mut verb = 0;
        while self.exchanges.last().is_some_and(|last| last.answer.is_empty()) {
            let op = Op { verb, ..ops[ops.len() - 1].clone() };
            self.exchanges.push((self.ask)(&op, keys, store));
            verb += 1;
        }
        self.outbox = self.exchanges.iter().flat_map(|one| one.request.clone()).collect();
    }

    /// Sends at most this many bytes. Returns false if all are sent.
    pub(crate) fn send(&mut self, len: usize) -> bool {
        let len = len.min(self.outbox.len());
        self.stream.get_mut().write_all(&self.outbox[..len]).expect("sent");
        self.outbox.drain(..len);
        !self.outbox.is_empty()
    }

    /// Sends bytes that have no reply.
    pub(crate) fn send_part(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("sent");
    }

    /// Reads and compares all replies.
    pub(crate) fn compare(&mut self, store: &mut Store) -> Result<(), Wrong> {
        for exchange in std::mem::take(&mut self.exchanges) {
            self.compare_one(&exchange, store).map_err(|wrong| {
                let asked = printable(&exchange.request);
                let expected: Vec<_> = exchange.answer.iter().map(show).collect();
                format!("asked: {asked}\nexpected: {}\nfound: {wrong}", expected.concat())
            })?;
        }
        Ok(())
    }

    fn compare_one(&mut self, exchange: &Exchange, store: &mut Store) -> Result<(), Wrong> {
        let mut before = Vec::new();
        for part in &exchange.answer {
            match part {
                Part::Bytes(expected) => {
                    let found = self.read(expected, &before)?;
                    before.extend(found);
                }
                Part::Number { key, version } => {
                    let number = self.number();
                    before.extend_from_slice(number.to_string().as_bytes());
                    store.record_number(key, *version, number)?;
                }
            }
        }
        Ok(())
    }

    /// Reads bytes and compares them with the expected ones.
    fn read(&mut self, expected: &[u8], before: &[u8]) -> Result<Vec<u8>, Wrong> {
        let mut found = Vec::with_capacity(expected.len());
        while found.len() < expected.len() {
            let buffer = self.fill().map_err(|error| match error.kind() {
                ErrorKind::WouldBlock => {
                    format!("{NO_ANSWER}, behind {}", printable(&[before, &found].concat()))
                }
                _ => error.to_string(),
            })?;
            let len = buffer.len().min(expected.len() - found.len());
            let more = &buffer[..len];
            if len == 0 || *more != expected[found.len()..found.len() + len] {
                let found = [before, &found, buffer].concat();
                return Err(if len == 0 { "the end".to_owned() } else { printable(&found) });
            }
            found.extend_from_slice(more);
            self.stream.consume(len);
        }
        Ok(found)
    }

    /// Waits for bytes and returns those that were received; none at the end.
    fn fill(&mut self) -> std::io::Result<&[u8]> {
        for _ in 1..MAX_WAITS {
            match self.stream.fill_buf() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => break,
            }
        }
        self.stream.fill_buf()
    }

    fn number(&mut self) -> u64 {
        let mut number = 0;
        loop {
            let byte = *self.fill().expect("an answer").first().unwrap_or(&b' ');
            if !byte.is_ascii_digit() {
                return number;
            }
            number = number * 10 + u64::from(byte - b'0');
            self.stream.consume(1);
        }
    }

    fn byte(&mut self) -> u8 {
        let byte = *self.fill().expect("an answer").first().expect("an answer, not the end");
        self.stream.consume(1);
        byte
    }

    /// Sends bytes, and reads a reply whose first line is its length, in RESP.
    pub(crate) fn get(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        self.stream.get_mut().write_all(request).expect("sent");
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            line.push(self.byte());
        }
        let line = String::from_utf8(line).expect("text");
        let len = line.strip_prefix('$')?.trim_end().parse::<usize>().ok()?;
        let mut value: Vec<u8> = (0..len + 2).map(|_| self.byte()).collect();
        value.truncate(len);
        Some(value)
    }
}

impl Lane {
    /// Describes the connection from the client's side, and what it receives after one more line is
    /// sent.
    pub(crate) fn probe(&mut self, patience: Duration) -> String {
        let waiting = self.stream.buffer().len();
        let unsent = self.outbox.len();
        let socket = self.stream.get_mut();
        let sent = socket.set_read_timeout(Some(patience)).and_then(|()| socket.write_all(b"\r\n"));
        let came = sent.and_then(|()| {
            self.stream.consume(waiting);
            self.stream.fill_buf().map(printable)
        });
        let came = came.unwrap_or_else(|error| error.to_string());
        format!("{unsent} bytes unsent, {waiting} unread; after one more line: {came}")
    }

    /// Sends bytes, and checks their reply.
    pub(crate) fn expect(&mut self, request: &[u8], expected: &[u8]) -> Result<(), Wrong> {
        self.stream.get_mut().write_all(request).expect("sent");
        self.read(expected, b"").map(drop)
    }
}

fn printable(bytes: &[u8]) -> String {
    const MOST: usize = 300;
    let text = bytes[..bytes.len().min(MOST)].escape_ascii();
    if bytes.len() <= MOST { text.to_string() } else { format!("{text}... ({})", bytes.len()) }
}

fn show(part: &Part) -> String {
    match part {
        Part::Bytes(bytes) => printable(bytes),
        Part::Number { .. } => "<number>".to_owned(),
    }
}
