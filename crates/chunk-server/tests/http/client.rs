//! A client that writes bytes and reads responses.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// A connection.
pub(crate) struct Client(BufReader<TcpStream>);

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).expect("a connection")))
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.get_ref().write_all(bytes.as_ref())
    }

    /// Closes the sending side of the connection.
    pub(crate) fn close_sending(&mut self) {
        self.0.get_ref().shutdown(Shutdown::Write).expect("a connection");
    }

    /// Reads the next response. The response to `HEAD` has no body.
    pub(crate) fn read(&mut self, head: bool) -> io::Result<Response> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let len = headers.get("content-length").filter(|_| !head && status != 304);
        let mut body = vec![0; len.map_or(0, |len| len.parse().expect("a length"))];
        self.0.read_exact(&mut body)?;
        Ok(Response { status, headers, body })
    }

    /// Sends a request with these lines of headers, and reads the response.
    pub(crate) fn request(&mut self, method: &str, path: &str, headers: &[&str]) -> Response {
        let lines: Vec<_> = headers.iter().map(|line| format!("{line}\r\n")).collect();
        self.write(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{}\r\n", lines.concat()))
            .expect("a connection");
        self.read(method == "HEAD").expect("an answer")
    }

    pub(crate) fn get(&mut self, path: &str, headers: &[&str]) -> Response {
        self.request("GET", path, headers)
    }

    /// Reads all bytes until the connection ends, with or without an error.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // The bytes before an error are kept.
        let _ = self.0.read_to_end(&mut rest);
        rest
    }
}

impl Response {
    #[track_caller]
    pub(crate) fn is(&self, status: u16, body: &[u8]) -> &Self {
        assert_eq!(self.status, status, "{:?}", self.headers);
        assert!(self.body == body, "{} bytes, not {}", self.body.len(), body.len());
        self
    }

    #[track_caller]
    pub(crate) fn has(&self, name: &str, value: &str) -> &Self {
        assert_eq!(self.headers.get(name).map(String::as_str), Some(value), "{name}");
        self
    }
}
