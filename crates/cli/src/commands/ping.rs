//! `nuthatch ping`: asks a server whether it is healthy, for probes and scripts.

use crate::outcome::{Failure, Outcome};
use crate::settings::DEFAULT_ADMIN;
use crate::terminal::print;
use clap::Args;
use nuthatch_listen::Address;
use nuthatch_listen::admin::{Client, Reply};
use nuthatch_units::parse_time;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

const NOTES: &str = "\
Examples:
  nuthatch ping                               the cache server of this machine
  nuthatch ping 127.0.0.1:9466                a follower with --admin 127.0.0.1:9466
  nuthatch ping unix:/run/nuthatch/admin.sock --quiet
  nuthatch serve & nuthatch ping --wait 30s   wait until the server is ready

ADDR is the address of --admin of nuthatch serve, follow, store serve or chunks serve; only nuthatch
serve has one by default. The request is GET /healthz, which needs no password and does not use a
connection for clients. A healthy server responds with status 200 and `ok`.

With --wait, there are 100 ms between a response and the next request. Each request ends after the
time of --timeout, or when the time of --wait is over.

--json prints an object with the members address, healthy, message and micros, the time of the
response. If no server responds, message is the error, which is also printed to standard error, and
micros is null.

Exit status:
  0  the server is healthy
  1  the server is not healthy, for example: it is stopping, or a follower's data is too old
  2  invalid command line
  3  no server responds at ADDR, it is not one of Nuthatch, or the name in ADDR is not resolved";

/// Time between two requests of `--wait`.
const INTERVAL: Duration = Duration::from_millis(100);

/// Maximum characters of a message that are printed.
const MAX_MESSAGE_LEN: usize = 4096;

/// Ask a server whether it is healthy: for probes of containers, and for scripts
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Ping {
    /// Address of the server's admin endpoint: host:port or unix:PATH
    #[arg(value_name = "ADDR", default_value = DEFAULT_ADMIN)]
    address: String,
    /// Maximum time for the response
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time_above_zero)]
    timeout: Duration,
    /// Repeat the request for at most this time, until the server is healthy
    #[arg(long, value_name = "TIME", value_parser = time_above_zero)]
    wait: Option<Duration>,
    /// Print nothing if the server is healthy
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Ping {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        check_address(&self.address)
            .map_err(|problem| Failure::Usage(format!("ADDR: {problem}")))?;
        match self.ask() {
            Ok((reply, time)) => {
                let is_healthy = reply.status == 200;
                self.print(is_healthy, reply.body.trim_end(), Some(time))?;
                Ok(if is_healthy { Outcome::Success } else { Outcome::NotFound })
            }
            Err(error) => {
                let message = self.message(&error);
                if self.json {
                    self.print(false, &message, None)?;
                }
                Err(Failure::Error(message))
            }
        }
    }

    /// Sends requests until the server is healthy or the time of `--wait` is over. Returns the last
    /// reply and its time.
    fn ask(&self) -> io::Result<(Reply, Duration)> {
        let begin = Instant::now();
        let rest = || self.wait.map(|wait| wait.saturating_sub(begin.elapsed()));
        // Nothing is sent: receiving waits for the interval.
        let (_sender, nothing) = channel::<()>();
        let mut previous = None;
        loop {
            let limit = rest().unwrap_or(self.timeout).min(self.timeout);
            let sent = Instant::now();
            let reply = self.request(limit).map(|reply| (reply, sent.elapsed()));
            let (is_last, is_late) = match &reply {
                Ok((reply, _)) => (reply.status == 200, false),
                Err(error) => (
                    error.kind() == io::ErrorKind::InvalidData,
                    error.kind() == io::ErrorKind::TimedOut && limit < self.timeout,
                ),
            };
            // A request that the end of `--wait` cuts off says less than the one before.
            let reply = match previous {
                Some(previous) if is_late => previous,
                _ => reply,
            };
            let rest = rest().unwrap_or_default();
            if is_last || rest <= INTERVAL {
                return reply;
            }
            let _ = nothing.recv_timeout(INTERVAL);
            previous = Some(reply);
        }
    }

    /// Sends one request, in at most this time.
    fn request(&self, limit: Duration) -> io::Result<Reply> {
        let begin = Instant::now();
        let address = self.resolve(limit)?;
        let client = Client::new(address, limit.saturating_sub(begin.elapsed()))?;
        client.request("/healthz").and_then(known)
    }

    /// Returns the address, in at most this time. A name is resolved each time: it may be that of a
    /// container that starts later.
    fn resolve(&self, limit: Duration) -> io::Result<Address> {
        let text = self.address.clone();
        if text.starts_with("unix:") || text.parse::<SocketAddr>().is_ok() {
            return text.parse().map_err(io::Error::other);
        }
        // The resolver of the system has its own, longer timeout.
        let (sender, receiver) = channel();
        thread::spawn(move || sender.send(text.to_socket_addrs().map(|mut all| all.next())));
        let unresolved = |error: &dyn std::fmt::Display| {
            io::Error::new(
                io::ErrorKind::HostUnreachable,
                format!("its name is not resolved: {error}"),
            )
        };
        match receiver.recv_timeout(limit) {
            Ok(Ok(Some(address))) => Ok(Address::Tcp(address)),
            Ok(Ok(None)) => Err(unresolved(&"it has no address")),
            Ok(Err(error)) => Err(unresolved(&error)),
            Err(_) => {
                let text = format!("expected an address for its name within {limit:?}, found none");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
        }
    }

    fn print(&self, is_healthy: bool, text: &str, time: Option<Duration>) -> Result<(), Failure> {
        if self.quiet && is_healthy {
            return Ok(());
        }
        let (address, micros) = (&self.address, time.map(|time| time.as_micros()));
        if self.json {
            let object = serde_json::json!({
                "address": address, "healthy": is_healthy, "message": text, "micros": micros,
            });
            return print(&format!("{object}\n"));
        }
        let (text, micros) = (printable(text), micros.unwrap_or_default());
        print(&format!("{address}: {text}, in {}.{:03} ms\n", micros / 1000, micros % 1000))
    }

    /// Returns the message for users.
    fn message(&self, error: &io::Error) -> String {
        let address = &self.address;
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => format!(
                "nothing listens at {address}: {error}; use the address of --admin of the server"
            ),
            io::ErrorKind::InvalidData | io::ErrorKind::Other => format!(
                "{address}: expected the admin endpoint of a server of Nuthatch, found another \
                 server: {error}; use the address of --admin of the server (default: \
                 {DEFAULT_ADMIN})"
            ),
            _ => format!("{address}: {error}"),
        }
    }
}

/// Reads a time of a flag.
fn time_above_zero(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        Duration::ZERO => Err("expected a time above zero, such as 5s".to_owned()),
        time => Ok(time),
    }
}

/// Checks the form of an address. Its name is not resolved yet.
fn check_address(text: &str) -> Result<(), String> {
    let expected = format!("expected host:port or unix:PATH, found `{text}`");
    let is_valid = match (text.strip_prefix("unix:"), text.rsplit_once(':')) {
        (Some(path), _) => !path.is_empty(),
        (None, Some((host, port))) => {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
        }
        (None, None) => false,
    };
    match text {
        _ if is_valid => Ok(()),
        path if path.contains('/') && !path.contains("//") => {
            Err(format!("{expected}: for a socket file, write unix:{path}"))
        }
        _ => Err(expected),
    }
}

/// Returns the reply if it is one of an admin endpoint.
fn known(reply: Reply) -> io::Result<Reply> {
    let found = match reply.status {
        200 if reply.body.trim_end() == "ok" => return Ok(reply),
        503 => return Ok(reply),
        200 => "another body".to_owned(),
        status => format!("status {status}"),
    };
    let text = format!("GET /healthz: expected status 200 with `ok`, or 503, found {found}");
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

/// Returns the text of a server for a terminal: control characters are escaped, and a long text is
/// cut off.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for char in text.chars().take(MAX_MESSAGE_LEN) {
        if char.is_control() {
            printable.extend(char.escape_default());
        } else {
            printable.push(char);
        }
    }
    if text.chars().nth(MAX_MESSAGE_LEN).is_some() {
        printable.push('…');
    }
    printable
}
