//! An origin that speaks HTTP and misbehaves on request. Threads and the standard library alone, so
//! that tests of other crates can include this file.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What the origin has, and how it behaves.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub(crate) struct Manners {
    /// The object, at every path.
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) etag: Option<String>,
    pub(crate) modified: Option<String>,
    /// The version, as S3 names it.
    pub(crate) version: Option<String>,
    /// The answer's `Date`; the origin has no clock of its own.
    pub(crate) date: Option<String>,
    /// Statuses of the next answers, in place of what was asked for.
    pub(crate) statuses: VecDeque<u16>,
    pub(crate) retry_after: Option<String>,
    /// After how many bytes of their bodies the next answers to requests for ranges are cut off.
    pub(crate) cuts: VecDeque<usize>,
    pub(crate) ignores_ranges: bool,
    pub(crate) ignores_conditions: bool,
    /// Sends bodies in pieces, without a length.
    pub(crate) unmeasured: bool,
    pub(crate) encoding: Option<String>,
    /// Requests for paths that begin with `/moved` are sent there.
    pub(crate) moved_to: Option<String>,
    /// Answers this range to every request for one.
    pub(crate) wrong_range: Option<Range<u64>>,
    /// Answers with no more bytes than these of a range, and says so.
    pub(crate) max_range_len: Option<u64>,
    /// Says nothing to requests for ranges of more than a byte.
    pub(crate) silent: bool,
    /// Every answer to a request for more than a byte waits until this is taken back.
    pub(crate) held: bool,
    /// No request is answered until this is taken back.
    pub(crate) deaf: bool,
    pub(crate) cache_control: Option<String>,
    /// Whoever does not show this is not let in.
    pub(crate) wants: Option<(String, String)>,
    /// The object changes to this one when so many requests for ranges were answered.
    pub(crate) changes_after: Option<(usize, Arc<Vec<u8>>, String)>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Asked {
    /// The range that was asked for.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        let (first, last) = self.headers.get("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some(first.parse().ok()?..last.parse::<u64>().ok()? + 1)
    }

    /// Whether it is for more than what an opening asks for.
    fn is_for_bytes(&self) -> bool {
        self.range().is_some_and(|range| range != (0..1))
    }
}

#[derive(Default)]
struct State {
    manners: Manners,
    asked: Vec<Asked>,
}

/// The origin. Its threads end with the process.
pub(crate) struct Server {
    address: SocketAddr,
    /// The socket that listens; the standard library shuts down sockets of this type alone.
    listening: TcpStream,
    state: Arc<(Mutex<State>, Condvar)>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that differ from place to place.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

impl Server {
    /// An origin with an object that has a strong tag.
    pub(crate) fn new(body: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let listening = listener.try_clone().expect("a descriptor");
        let listening = TcpStream::from(OwnedFd::from(listening));
        let etag = Some("\"one\"".to_owned());
        let manners = Manners { body: Arc::new(body), etag, ..Manners::default() };
        let state = State { manners, ..State::default() };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // It ends when the socket does not listen any more.
                let (Ok(stream), state) = (stream, shared.clone()) else { return };
                std::thread::spawn(move || talk(&stream, &state));
            }
        });
        Self { address, listening, state }
    }

    /// Refuses all connections from now on. Those that are open stay.
    pub(crate) fn refuse(&self) {
        self.listening.shutdown(Shutdown::Both).expect("a socket that listens");
    }

    /// The address of something on it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Changes what it has and does.
    pub(crate) fn behave(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut lock(&self.state.0).manners);
        self.state.1.notify_all();
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        lock(&self.state.0).asked.clone()
    }

    /// The ranges that were asked for, without what openings ask for.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let asked = self.asked();
        asked.iter().filter(|asked| asked.is_for_bytes()).filter_map(Asked::range).collect()
    }

    /// Forgets the requests so far.
    pub(crate) fn forget(&self) {
        lock(&self.state.0).asked.clear();
    }

    /// Waits until it was opened so often, and so many ranges were asked for.
    pub(crate) fn wait_for(&self, openings: usize, ranges: usize) {
        let mut state = lock(&self.state.0);
        loop {
            let asked = state.asked.iter().filter(|asked| asked.is_for_bytes()).count();
            if asked >= ranges && state.asked.len() - asked >= openings {
                return;
            }
            state = self.state.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Serves a connection until one side has enough.
fn talk(stream: &TcpStream, state: &(Mutex<State>, Condvar)) {
    stream.set_nodelay(true).expect("a connection");
    let mut reader = BufReader::new(stream);
    while let Ok(Some(asked)) = read_request(&mut reader) {
        let manners = {
            let mut now = lock(&state.0);
            now.asked.push(asked.clone());
            state.1.notify_all();
            while now.manners.deaf || (now.manners.held && asked.is_for_bytes()) {
                now = state.1.wait(now).unwrap_or_else(PoisonError::into_inner);
            }
            let manners = now.manners.clone();
            let Manners { statuses, cuts, changes_after, .. } = &mut now.manners;
            statuses.pop_front();
            if asked.is_for_bytes() {
                cuts.pop_front();
                let left = changes_after.as_mut().map(|change| {
                    change.0 -= 1;
                    change.0
                });
                if left == Some(0)
                    && let Some((_, body, etag)) = changes_after.take()
                {
                    (now.manners.body, now.manners.etag) = (body, Some(etag));
                }
            }
            manners
        };
        if !matches!(answer(stream, &asked, &manners), Ok(true)) {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Ok(Some(Asked { method, target, headers }))
}

/// Answers, and says whether the connection can be used again.
fn answer(mut stream: &TcpStream, asked: &Asked, manners: &Manners) -> io::Result<bool> {
    let mut head: Vec<String> = Vec::new();
    let mut add = |name: &str, value: &Option<String>| {
        if let Some(value) = value {
            head.push(format!("{name}: {value}\r\n"));
        }
    };
    add("Date", &manners.date);
    add("Content-Encoding", &manners.encoding);
    let shown = |(name, value): &(String, String)| asked.headers.get(name) == Some(value);
    let refused = manners.wants.as_ref().is_some_and(|wanted| !shown(wanted));
    let status = manners.statuses.front().copied().filter(|status| *status != 200);
    if let Some(status) = status.or(refused.then_some(401)) {
        add("Retry-After", &manners.retry_after);
        let body: &[u8] = if asked.method == "HEAD" { b"" } else { b"nothing here but 5ecrets" };
        return respond(stream, status, &head, body).map(|()| true);
    }
    if manners.moved_to.is_some() && asked.target.starts_with("/moved") {
        add("Location", &manners.moved_to);
        return respond(stream, 302, &head, b"").map(|()| true);
    }
    if manners.silent && asked.is_for_bytes() {
        // Until the other side has enough.
        let _ = io::copy(&mut stream, &mut io::sink());
        return Ok(false);
    }
    add("Cache-Control", &manners.cache_control);
    add("ETag", &manners.etag);
    add("Last-Modified", &manners.modified);
    add("X-Amz-Version-Id", &manners.version);
    let same = |name, current: &Option<String>| {
        asked.headers.get(name).is_none_or(|wanted| Some(wanted) == current.as_ref())
    };
    let holds = same("if-match", &manners.etag) && same("if-unmodified-since", &manners.modified);
    if !holds && !manners.ignores_conditions {
        return respond(stream, 412, &head, b"").map(|()| true);
    }
    match asked.range().filter(|_| !manners.ignores_ranges) {
        Some(range) => send_range(stream, asked, manners, range, head),
        None if manners.unmeasured => {
            let head = head.concat();
            write!(stream, "HTTP/1.1 200 OK\r\n{head}Transfer-Encoding: chunked\r\n\r\n")?;
            for piece in manners.body.chunks(10_000) {
                write!(stream, "{:x}\r\n", piece.len())?;
                stream.write_all(piece)?;
                write!(stream, "\r\n")?;
            }
            write!(stream, "0\r\n\r\n").map(|()| true)
        }
        None if asked.method == "HEAD" => {
            let (head, len) = (head.concat(), manners.body.len());
            write!(stream, "HTTP/1.1 200 OK\r\n{head}Content-Length: {len}\r\n\r\n").map(|()| true)
        }
        None => respond(stream, 200, &head, &manners.body).map(|()| true),
    }
}

/// Answers with a range, or with what is left of it.
fn send_range(
    mut stream: &TcpStream,
    asked: &Asked,
    manners: &Manners,
    range: Range<u64>,
    mut head: Vec<String>,
) -> io::Result<bool> {
    let len = manners.body.len() as u64;
    if range.start >= len {
        head.push(format!("Content-Range: bytes */{len}\r\n"));
        return respond(stream, 416, &head, b"").map(|()| true);
    }
    let end = range.end.min(len).min(range.start + manners.max_range_len.unwrap_or(len));
    let range = manners.wrong_range.clone().unwrap_or(range.start..end);
    let last = range.end - 1;
    head.push(format!("Content-Range: bytes {}-{last}/{len}\r\n", range.start));
    let body = &manners.body[range.start as usize..range.end as usize];
    match manners.cuts.front().filter(|_| asked.is_for_bytes()) {
        Some(cut) if *cut < body.len() => {
            let (head, len) = (head.concat(), body.len());
            write!(stream, "HTTP/1.1 206 Partial\r\n{head}Content-Length: {len}\r\n\r\n")?;
            stream.write_all(&body[..*cut])?;
            Ok(false)
        }
        _ => respond(stream, 206, &head, body).map(|()| true),
    }
}

fn respond(mut stream: &TcpStream, status: u16, head: &[String], body: &[u8]) -> io::Result<()> {
    let (head, length) = (head.concat(), body.len());
    write!(stream, "HTTP/1.1 {status} Said\r\n{head}Content-Length: {length}\r\n\r\n")?;
    stream.write_all(body)
}
