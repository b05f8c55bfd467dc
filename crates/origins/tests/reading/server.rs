//! An HTTP origin whose responses and faults a test sets. It uses only threads and the standard
//! library, so that tests of other crates can include this file.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The object of the origin, and the faults of its responses.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the faults are independent of each other")]
pub(crate) struct Behaviour {
    /// The bytes of the object. Every path has the same object.
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) etag: Option<String>,
    pub(crate) modified: Option<String>,
    /// The header `x-amz-version-id` of S3.
    pub(crate) s3_version: Option<String>,
    /// The header `Date` of responses; none by default.
    pub(crate) date: Option<String>,
    /// The statuses of the next responses, one for each request; 200 is the normal response.
    pub(crate) statuses: VecDeque<u16>,
    pub(crate) retry_after: Option<String>,
    /// The number of bytes after which the bodies of the next responses with ranges are cut off.
    pub(crate) cuts: VecDeque<usize>,
    pub(crate) ignores_ranges: bool,
    pub(crate) ignores_conditions: bool,
    /// Whether bodies are sent in pieces, without `Content-Length`.
    pub(crate) omits_length: bool,
    pub(crate) encoding: Option<String>,
    /// The address to which paths that begin with `/moved` are redirected.
    pub(crate) redirects_to: Option<String>,
    /// The range of each response to a request for a range, whatever range was requested.
    pub(crate) wrong_range: Option<Range<u64>>,
    /// The maximum number of bytes of a response with a range; `Content-Range` names them.
    pub(crate) max_range_len: Option<u64>,
    /// Whether requests for more than one byte never get a response.
    pub(crate) stalls_bodies: bool,
    /// Whether responses to requests for more than one byte wait until this is unset.
    pub(crate) holds_bodies: bool,
    /// Whether all responses wait until this is unset.
    pub(crate) holds_all: bool,
    pub(crate) cache_control: Option<String>,
    /// The name and value of a header without which a request gets status 401.
    pub(crate) required_header: Option<(String, String)>,
    /// The number of responses with bytes after which the object changes, its new bytes and tag.
    pub(crate) changes_after: Option<(usize, Arc<Vec<u8>>, String)>,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Request {
    /// Returns the requested range.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        let (first, last) = self.headers.get("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some(first.parse().ok()?..last.parse::<u64>().ok()? + 1)
    }

    /// Returns whether it requests more than the first byte, which opening an object requests.
    fn is_for_bytes(&self) -> bool {
        self.range().is_some_and(|range| range != (0..1))
    }
}

#[derive(Default)]
struct State {
    behaviour: Behaviour,
    requests: Vec<Request>,
}

/// The origin. Its threads run until the process ends.
pub(crate) struct Server {
    address: SocketAddr,
    /// The listening socket, as the only type of socket that the standard library can shut down.
    listening: TcpStream,
    state: Arc<(Mutex<State>, Condvar)>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns random bytes for an object.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    nuthatch_testing::random::bytes(seed, len)
}

impl Server {
    /// Starts an origin with an object that has a strong tag.
    pub(crate) fn new(body: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let listening = listener.try_clone().expect("a descriptor");
        let listening = TcpStream::from(OwnedFd::from(listening));
        let etag = Some("\"one\"".to_owned());
        let behaviour = Behaviour { body: Arc::new(body), etag, ..Behaviour::default() };
        let state = State { behaviour, ..State::default() };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // Fails once the socket is shut down: see `refuse_connections`.
                let (Ok(stream), state) = (stream, shared.clone()) else { return };
                std::thread::spawn(move || serve_connection(&stream, &state));
            }
        });
        Self { address, listening, state }
    }

    /// Refuses further connections. Open connections stay open.
    pub(crate) fn refuse_connections(&self) {
        self.listening.shutdown(Shutdown::Both).expect("a listening socket");
    }

    /// Returns the address of a path of this origin.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Changes the object and the faults.
    pub(crate) fn configure(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut lock(&self.state.0).behaviour);
        self.state.1.notify_all();
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        lock(&self.state.0).requests.clone()
    }

    /// Returns the requested ranges, except the first byte, which opening an object requests.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let requests = self.requests();
        requests.iter().filter(|each| each.is_for_bytes()).filter_map(Request::range).collect()
    }

    /// Clears the list of requests.
    pub(crate) fn clear_requests(&self) {
        lock(&self.state.0).requests.clear();
    }

    /// Waits until this many requests were for the version only, and this many for bytes.
    pub(crate) fn wait_for_requests(&self, openings: usize, ranges: usize) {
        let mut state = lock(&self.state.0);
        loop {
            let for_bytes = state.requests.iter().filter(|each| each.is_for_bytes()).count();
            if for_bytes >= ranges && state.requests.len() - for_bytes >= openings {
                return;
            }
            state = self.state.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Serves a connection until one side closes it.
fn serve_connection(stream: &TcpStream, state: &(Mutex<State>, Condvar)) {
    stream.set_nodelay(true).expect("a connection");
    let mut reader = BufReader::new(stream);
    while let Ok(Some(request)) = read_request(&mut reader) {
        let behaviour = {
            let mut now = lock(&state.0);
            now.requests.push(request.clone());
            state.1.notify_all();
            while now.behaviour.holds_all || (now.behaviour.holds_bodies && request.is_for_bytes())
            {
                now = state.1.wait(now).unwrap_or_else(PoisonError::into_inner);
            }
            let behaviour = now.behaviour.clone();
            let Behaviour { statuses, cuts, changes_after, .. } = &mut now.behaviour;
            statuses.pop_front();
            if request.is_for_bytes() {
                cuts.pop_front();
                let left = changes_after.as_mut().map(|change| {
                    change.0 -= 1;
                    change.0
                });
                if left == Some(0)
                    && let Some((_, body, etag)) = changes_after.take()
                {
                    (now.behaviour.body, now.behaviour.etag) = (body, Some(etag));
                }
            }
            behaviour
        };
        if !matches!(respond_to(stream, &request, &behaviour), Ok(true)) {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
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
    Ok(Some(Request { method, target, headers }))
}

/// Responds to a request. Returns whether the connection can be used again.
fn respond_to(
    mut stream: &TcpStream,
    request: &Request,
    behaviour: &Behaviour,
) -> io::Result<bool> {
    let mut head: Vec<String> = Vec::new();
    let mut add = |name: &str, value: &Option<String>| {
        if let Some(value) = value {
            head.push(format!("{name}: {value}\r\n"));
        }
    };
    add("Date", &behaviour.date);
    add("Content-Encoding", &behaviour.encoding);
    let shown = |(name, value): &(String, String)| request.headers.get(name) == Some(value);
    let refused = behaviour.required_header.as_ref().is_some_and(|wanted| !shown(wanted));
    let status = behaviour.statuses.front().copied().filter(|status| *status != 200);
    if let Some(status) = status.or(refused.then_some(401)) {
        add("Retry-After", &behaviour.retry_after);
        let body: &[u8] = if request.method == "HEAD" { b"" } else { b"nothing here but 5ecrets" };
        return write_response(stream, status, &head, body).map(|()| true);
    }
    if behaviour.redirects_to.is_some() && request.target.starts_with("/moved") {
        add("Location", &behaviour.redirects_to);
        return write_response(stream, 302, &head, b"").map(|()| true);
    }
    if behaviour.stalls_bodies && request.is_for_bytes() {
        // Until the client closes the connection.
        let _ = io::copy(&mut stream, &mut io::sink());
        return Ok(false);
    }
    add("Cache-Control", &behaviour.cache_control);
    add("ETag", &behaviour.etag);
    add("Last-Modified", &behaviour.modified);
    add("X-Amz-Version-Id", &behaviour.s3_version);
    let same = |name, current: &Option<String>| {
        request.headers.get(name).is_none_or(|wanted| Some(wanted) == current.as_ref())
    };
    let holds =
        same("if-match", &behaviour.etag) && same("if-unmodified-since", &behaviour.modified);
    if !holds && !behaviour.ignores_conditions {
        return write_response(stream, 412, &head, b"").map(|()| true);
    }
    match request.range().filter(|_| !behaviour.ignores_ranges) {
        Some(range) => send_range(stream, request, behaviour, range, head),
        None if behaviour.omits_length => {
            let head = head.concat();
            write!(stream, "HTTP/1.1 200 OK\r\n{head}Transfer-Encoding: chunked\r\n\r\n")?;
            for piece in behaviour.body.chunks(10_000) {
                write!(stream, "{:x}\r\n", piece.len())?;
                stream.write_all(piece)?;
                write!(stream, "\r\n")?;
            }
            write!(stream, "0\r\n\r\n").map(|()| true)
        }
        None if request.method == "HEAD" => {
            let (head, len) = (head.concat(), behaviour.body.len());
            write!(stream, "HTTP/1.1 200 OK\r\n{head}Content-Length: {len}\r\n\r\n").map(|()| true)
        }
        None => write_response(stream, 200, &head, &behaviour.body).map(|()| true),
    }
}

/// Responds with the part of a range that the object has.
fn send_range(
    mut stream: &TcpStream,
    request: &Request,
    behaviour: &Behaviour,
    range: Range<u64>,
    mut head: Vec<String>,
) -> io::Result<bool> {
    let len = behaviour.body.len() as u64;
    if range.start >= len {
        head.push(format!("Content-Range: bytes */{len}\r\n"));
        return write_response(stream, 416, &head, b"").map(|()| true);
    }
    let end = range.end.min(len).min(range.start + behaviour.max_range_len.unwrap_or(len));
    let range = behaviour.wrong_range.clone().unwrap_or(range.start..end);
    let last = range.end - 1;
    head.push(format!("Content-Range: bytes {}-{last}/{len}\r\n", range.start));
    let body = &behaviour.body[range.start as usize..range.end as usize];
    match behaviour.cuts.front().filter(|_| request.is_for_bytes()) {
        Some(cut) if *cut < body.len() => {
            let (head, len) = (head.concat(), body.len());
            write!(stream, "HTTP/1.1 206 Partial\r\n{head}Content-Length: {len}\r\n\r\n")?;
            stream.write_all(&body[..*cut])?;
            Ok(false)
        }
        _ => write_response(stream, 206, &head, body).map(|()| true),
    }
}

fn write_response(
    mut stream: &TcpStream,
    status: u16,
    head: &[String],
    body: &[u8],
) -> io::Result<()> {
    let (head, length) = (head.concat(), body.len());
    write!(stream, "HTTP/1.1 {status} Said\r\n{head}Content-Length: {length}\r\n\r\n")?;
    stream.write_all(body)
}
