//! `nuthatch ping`: asks a server whether it is healthy, for probes and scripts.

use crate::outcome::{Failure, Outcome};
use crate::settings::DEFAULT_ADMIN;
use crate::terminal::Stdout;
use clap::Args;
use nuthatch_listen::Address;
use nuthatch_listen::admin::{Client, Reply};
use nuthatch_units::parse_time;
use std::io;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const NOTES: &str = "\
Examples:
  nuthatch ping                               the cache server of this machine
  nuthatch ping 127.0.0.1:9466                a follower with --admin 127.0.0.1:9466
  nuthatch ping unix:/run/nuthatch/admin.sock --quiet
  nuthatch serve & nuthatch ping --wait 30s   wait until the server is ready

ADDR is the address of --admin of nuthatch serve, follow, store serve or chunks serve; only nuthatch
serve has one by default. The request is GET /healthz, which needs no password and does not use a
connection for clients.

Exit status:
  0  the server is healthy
  1  the server is not healthy, for example: it is stopping, or a follower's data is too old
  2  invalid command line
  3  no server responds at ADDR";

/// Time between two requests of `--wait`.
const INTERVAL: Duration = Duration::from_millis(100);

/// Ask a server whether it is healthy: for probes of containers, and for scripts
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Ping {
    /// Address of the server's admin endpoint: host:port or unix:PATH
    #[arg(value_name = "ADDR", default_value = DEFAULT_ADMIN)]
    address: String,
    /// Maximum time for the response
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    timeout: Duration,
    /// Repeat the request for at most this time, until the server is healthy
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
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
        let usage = |error| Failure::Usage(format!("ADDR: {error}"));
        let address: Address = self.address.parse().map_err(usage)?;
        let client = Client::new(address, self.timeout);
        let client = client.map_err(|e| Failure::Error(e.to_string()))?;
        let (reply, time) = self.ask(&client).map_err(|error| failure(&client, &error))?;
        let is_healthy = reply.status == 200;
        self.print(&client, &reply, time)?;
        Ok(if is_healthy { Outcome::Success } else { Outcome::NotFound })
    }

    /// Sends requests until the server is healthy or the time of `--wait` is over. Returns the last
    /// reply and its time.
    fn ask(&self, client: &Client) -> io::Result<(Reply, Duration)> {
        let begin = Instant::now();
        // Nothing is sent: receiving waits for the interval.
        let (_sender, nothing) = channel::<()>();
        loop {
            let sent = Instant::now();
            let reply = client.request("/healthz").and_then(known);
            let is_last = match &reply {
                Ok(reply) => reply.status == 200,
                Err(error) => error.kind() == io::ErrorKind::InvalidData,
            };
            let rest = self.wait.unwrap_or_default().saturating_sub(begin.elapsed());
            if is_last || rest.is_zero() {
                return reply.map(|reply| (reply, sent.elapsed()));
            }
            let _ = nothing.recv_timeout(rest.min(INTERVAL));
        }
    }

    fn print(&self, client: &Client, reply: &Reply, time: Duration) -> Result<(), Failure> {
        let is_healthy = reply.status == 200;
        if self.quiet && is_healthy {
            return Ok(());
        }
        let (address, text) = (client.address().to_string(), reply.body.trim_end());
        let micros = time.as_micros();
        let line = if self.json {
            let object = serde_json::json!({
                "address": address, "healthy": is_healthy, "message": text, "micros": micros,
            });
            format!("{object}\n")
        } else {
            format!("{address}: {text}, in {}.{:03} ms\n", micros / 1000, micros % 1000)
        };
        let mut stdout = Stdout::new();
        stdout.write(line.as_bytes())?;
        stdout.flush()?;
        Ok(())
    }
}

/// Returns the reply if it is one of an admin endpoint.
fn known(reply: Reply) -> io::Result<Reply> {
    if matches!(reply.status, 200 | 503) {
        return Ok(reply);
    }
    let text = format!("GET /healthz: expected status 200 or 503, found {}", reply.status);
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

fn failure(client: &Client, error: &io::Error) -> Failure {
    let address = client.address();
    Failure::Error(match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            format!(
                "nothing listens at {address}: {error}; use the address of --admin of the server"
            )
        }
        io::ErrorKind::InvalidData | io::ErrorKind::Other => format!(
            "{address}: expected the admin endpoint of a server of Nuthatch, found another server: \
             {error}; use the address of --admin of the server (default: {DEFAULT_ADMIN})"
        ),
        _ => format!("{address}: {error}"),
    })
}
