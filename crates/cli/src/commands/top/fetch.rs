//! Fetches samples from the admin endpoint of a server.

use super::report::Report;
use super::sample::Sample;
use crate::settings::DEFAULT_ADMIN;
use nuthatch_listen::Address;
use nuthatch_listen::admin::{Client, Reply};
use std::fmt::Display;
use std::io;
use std::time::{Duration, Instant};

/// The status of a wrong token.
const UNAUTHORIZED: u16 = 401;
/// The status of a token that the server did not check, after too many wrong ones of any client.
const TOO_MANY_REQUESTS: u16 = 429;

/// The time for which the server then checks no token.
const WAIT: Duration = Duration::from_secs(10);

/// Fetches the current counters of the server.
///
/// # Errors
///
/// Returns what was found at the address instead of the admin endpoint of a cache server.
pub(super) fn sample(client: &Client) -> Result<Sample, String> {
    let sample = metrics(client)?;
    let report = parsed(client.address(), &reply(client.address(), client.request(REPORT))?)?;
    Ok(Sample { report, ..sample })
}

/// Fetches the current metrics of the server.
fn metrics(client: &Client) -> Result<Sample, String> {
    let address = client.address();
    let text = client.get("/metrics").map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => format!(
            "nothing listens at {address}: {error}; `nuthatch serve --admin {address}` starts a \
             server that does"
        ),
        // The response is not that of an admin endpoint.
        io::ErrorKind::InvalidData | io::ErrorKind::Other | io::ErrorKind::UnexpectedEof => {
            another_server(address, &error)
        }
        _ => format!("{address}: {error}"),
    })?;
    Sample::parse(&text).map_err(|problem| another_server(address, &problem))
}

/// The path of the report of the server.
const REPORT: &str = "/live.json";

fn reply(address: &Address, reply: io::Result<Reply>) -> Result<Reply, String> {
    reply.map_err(|error| format!("{address}: {error}"))
}

/// Parses the report of the server. A server of an earlier version has none.
fn parsed(address: &Address, reply: &Reply) -> Result<Report, String> {
    match reply.status {
        200 => Report::parse(&reply.body).map_err(|text| another_server(address, &text)),
        404 => Ok(Report::default()),
        _ => Err(format!("{address}: {}", reply.body.trim())),
    }
}

/// Fetches samples again and again.
pub(super) struct Fetcher {
    client: Client,
    /// When the token is presented again. `None` if it is presented.
    wait_until: Option<Instant>,
    /// Why private values are hidden in spite of a token.
    token_problem: Option<String>,
}

impl Fetcher {
    pub(super) fn new(client: Client) -> Self {
        Self { client, wait_until: None, token_problem: None }
    }

    /// Fetches the current counters of the server. A wrong token is not presented again: wrong
    /// tokens would make the server refuse the right token of other clients. A token that the
    /// server did not check is presented again ten seconds later. Meanwhile private values are
    /// hidden.
    ///
    /// # Errors
    ///
    /// Those of [`sample`], except for a refused token.
    pub(super) fn sample(&mut self) -> Result<Sample, String> {
        let sample = metrics(&self.client)?;
        let report = self.report(Instant::now())?;
        Ok(Sample { report, token_problem: self.token_problem.clone(), ..sample })
    }

    fn report(&mut self, now: Instant) -> Result<Report, String> {
        if self.wait_until.is_none_or(|end| now >= end) {
            let reply = reply(self.client.address(), self.client.request(REPORT))?;
            if ![UNAUTHORIZED, TOO_MANY_REQUESTS].contains(&reply.status) {
                if self.wait_until.take().is_some() {
                    self.token_problem = None;
                }
                return parsed(self.client.address(), &reply);
            }
            self.note_refused(&reply, now);
        }
        let reply = reply(self.client.address(), self.client.request_without_token(REPORT))?;
        parsed(self.client.address(), &reply)
    }

    /// Drops a wrong token. Keeps one that the server did not check.
    fn note_refused(&mut self, reply: &Reply, now: Instant) {
        let problem = if reply.status == UNAUTHORIZED {
            self.client.drop_token();
            self.wait_until = None;
            let reason = reply.body.trim();
            format!(
                "because the server refused the token: {reason}; restart top with the new token"
            )
        } else {
            self.wait_until = Some(now + WAIT);
            "for ten seconds: after too many wrong tokens of any client, the server checks none"
                .to_owned()
        };
        self.token_problem = Some(format!("private values are hidden {problem}"));
    }
}

fn another_server(address: &Address, problem: &dyn Display) -> String {
    format!(
        "{address}: expected the admin endpoint of nuthatch serve, found another server: \
         {problem}; use the address of --admin of the cache server (default: {DEFAULT_ADMIN})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    /// Sends this status to a request. Returns whether the request has a token.
    fn respond(mut stream: TcpStream, status: u16) -> bool {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a request");
            request.extend(byte);
        }
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: 2\r\n\r\n");
        stream.write_all(format!("{head}{{}}").as_bytes()).expect("sent");
        String::from_utf8_lossy(&request).contains("Bearer right")
    }

    /// Starts a server that sends these statuses. Returns a client of it with a token, and the
    /// thread, which returns which requests had the token.
    fn serve(statuses: Vec<u16>) -> (Fetcher, thread::JoinHandle<Vec<bool>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let client = Client::new(Address::Tcp(address), Duration::from_mins(1));
        let client = client.and_then(|client| client.with_token("right")).expect("a client");
        let server = thread::spawn(move || {
            let streams = statuses.into_iter().zip(listener.incoming());
            streams.map(|(status, stream)| respond(stream.expect("a client"), status)).collect()
        });
        (Fetcher::new(client), server)
    }

    /// Wrong tokens of other clients made `top` drop a right token for good.
    #[test]
    fn a_token_that_was_not_checked_is_kept_and_presented_again() {
        let (mut fetcher, server) = serve(vec![429, 404, 404, 404, 404]);
        let start = Instant::now();
        fetcher.report(start).expect("a report");
        assert!(fetcher.token_problem.as_deref().expect("a problem").contains("ten seconds"));
        fetcher.report(start + WAIT / 2).expect("a report");
        assert!(fetcher.token_problem.is_some());
        for _ in 0..2 {
            fetcher.report(start + WAIT).expect("a report");
            assert_eq!(fetcher.token_problem, None);
        }
        assert_eq!(server.join().expect("its end"), [true, false, false, true, true]);
    }

    #[test]
    fn a_wrong_token_is_not_presented_again() {
        let (mut fetcher, server) = serve(vec![429, 404, 401, 404, 404]);
        let start = Instant::now();
        for after in [Duration::ZERO, WAIT, WAIT * 2] {
            fetcher.report(start + after).expect("a report");
        }
        assert!(fetcher.token_problem.expect("a problem").contains("refused the token"));
        assert_eq!(server.join().expect("its end"), [true, false, true, false, false]);
    }
}
