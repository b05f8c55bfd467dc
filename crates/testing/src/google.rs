//! The XML interface of Google Cloud Storage, as far as clients of this project use it: objects
//! with generation numbers and conditions, ranges, uploads in parts, and lists.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A server with one bucket of any name. Its threads end with the process.
#[derive(Debug)]
pub struct Google {
    account: PathBuf,
    objects: Arc<Mutex<Objects>>,
}

#[derive(Debug, Default)]
struct Objects {
    /// The generation and the bytes of each object.
    stored: BTreeMap<String, (u64, Vec<u8>)>,
    /// Parts by upload and number.
    parts: BTreeMap<(String, u32), Vec<u8>>,
    /// The number of changes.
    changes: u64,
    requests: Vec<String>,
}

struct Request {
    method: String,
    /// The object, decoded, or an empty name.
    name: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// A status, headers and a body.
type Response = (&'static str, String, Vec<u8>);

impl Google {
    /// Starts a server at any free port of the loopback interface. Writes a file with its address,
    /// in the form of a service account, to the folder.
    ///
    /// # Panics
    ///
    /// If it cannot listen or write the file.
    #[must_use]
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let account = folder.join("account.json");
        let text = format!(
            r#"{{"gcs_base_url": "http://{address}", "disable_oauth": true, "client_email": "",
                "private_key": "", "private_key_id": ""}}"#
        );
        std::fs::write(&account, text).expect("a file");
        let objects = Arc::<Mutex<Objects>>::default();
        let shared = Arc::clone(&objects);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let objects = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &objects));
            }
        });
        Self { account, objects }
    }

    /// Sets the environment of a program that uses the server.
    pub fn configure(&self, program: &mut Command) {
        program.env("GOOGLE_SERVICE_ACCOUNT_PATH", &self.account).env("GOOGLE_ALLOW_HTTP", "true");
    }

    /// Returns the methods and names of the requests since the last call.
    ///
    /// # Panics
    ///
    /// If a thread of the server has panicked.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.objects.lock().expect("objects").requests)
    }
}

fn serve(stream: TcpStream, objects: &Mutex<Objects>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let (status, headers, body) = objects.lock().expect("objects").respond(request);
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        let stream = reader.get_mut();
        if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

/// Reads a request. Returns `None` at the end of the connection.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let first = lines.next()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let headers: BTreeMap<_, _> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(": ").map(|(k, v)| (k.to_lowercase(), v.to_owned())))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (name.to_owned(), decode(&value.replace('+', " "))))
        .collect();
    let name = path.trim_start_matches('/').split_once('/').map_or("", |(_, name)| name);
    Some(Request { method, name: decode(name), query, headers, body })
}

/// Decodes percent signs.
fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).expect("UTF-8")
}

impl Objects {
    fn respond(&mut self, mut request: Request) -> Response {
        self.requests.push(format!("{} {}", request.method, request.name));
        let body = std::mem::take(&mut request.body);
        let upload = request.query.get("uploadId").cloned();
        match (&request.method[..], upload) {
            ("GET", _) if request.name.is_empty() => self.list(&request),
            ("GET", _) => self.get(&request),
            ("PUT", None) => self.put(&request, body),
            ("DELETE", None) if self.stored.remove(&request.name).is_some() => empty("204 Removed"),
            ("POST", None) => {
                let text = format!(
                    "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>\
                     <UploadId>{}</UploadId></InitiateMultipartUploadResult>",
                    self.requests.len()
                );
                ("200 OK", String::new(), text.into_bytes())
            }
            ("PUT", Some(upload)) => {
                let number = request.query["partNumber"].parse().expect("a number");
                self.parts.insert((upload, number), body);
                ("200 OK", format!("ETag: \"{number}\"\r\n"), Vec::new())
            }
            ("POST", Some(upload)) => {
                let all = (upload.clone(), 0)..(upload, u32::MAX);
                let parts: Vec<_> = self.parts.range(all).map(|(_, part)| part.clone()).collect();
                let (status, headers, _) = self.put(&request, parts.concat());
                let text = "<CompleteMultipartUploadResult><ETag>\"1\"</ETag>\
                            </CompleteMultipartUploadResult>";
                (status, headers, text.into())
            }
            _ => empty("404 Not Found"),
        }
    }

    fn put(&mut self, request: &Request, body: Vec<u8>) -> Response {
        let current = self.stored.get(&request.name).map_or(0, |(generation, _)| *generation);
        let expected = request.headers.get("x-goog-if-generation-match");
        if expected.is_some_and(|expected| *expected != current.to_string()) {
            return empty("412 Precondition Failed");
        }
        self.changes += 1;
        self.stored.insert(request.name.clone(), (self.changes, body));
        ("200 OK", version(self.changes), Vec::new())
    }

    fn get(&self, request: &Request) -> Response {
        let Some((generation, bytes)) = self.stored.get(&request.name) else {
            return empty("404 Not Found");
        };
        let headers =
            format!("{}Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n", version(*generation));
        let none_match = request.headers.get("if-none-match");
        if none_match.is_some_and(|tag| *tag == format!("\"{generation}\"")) {
            return ("304 Not Modified", headers, Vec::new());
        }
        let range = request.headers.get("range").and_then(|range| range.strip_prefix("bytes="));
        let Some((from, to)) = range.and_then(|range| range.split_once('-')) else {
            return ("200 OK", headers, bytes.clone());
        };
        let from = from.parse().unwrap_or(0);
        let to = to.parse().map_or(bytes.len(), |to: usize| bytes.len().min(to + 1));
        let range = format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, bytes.len());
        ("206 Partial Content", headers + &range, bytes[from..to].to_vec())
    }

    fn list(&self, request: &Request) -> Response {
        let prefix = request.query.get("prefix").map_or("", String::as_str);
        let mut text = "<ListBucketResult>".to_owned();
        for (name, (generation, bytes)) in &self.stored {
            if name.starts_with(prefix) {
                write!(
                    text,
                    "<Contents><Key>{name}</Key><Size>{}</Size><ETag>\"{generation}\"</ETag>\
                     <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
                    bytes.len()
                )
                .expect("text");
            }
        }
        ("200 OK", String::new(), (text + "</ListBucketResult>").into_bytes())
    }
}

fn version(generation: u64) -> String {
    format!("ETag: \"{generation}\"\r\nx-goog-generation: {generation}\r\n")
}

fn empty(status: &'static str) -> Response {
    (status, String::new(), Vec::new())
}
