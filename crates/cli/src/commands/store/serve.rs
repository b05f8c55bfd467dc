//! `nuthatch store serve`: serves a store over gRPC.

use super::credentials::Credentials;
use super::keep_changes::keep_changes;
use super::open::open_store;
use super::store_args::NetworkArgs;
use crate::arguments::{MIN_LIMIT_MS, MonitoringArgs, TlsArgs, parse_address, start_failure};
use crate::logs::server_started;
use crate::outcome::{Failure, Outcome};
use crate::process::{self, MemoryLimit, Request, ServerProcess, end_at_once};
use crate::settings::DEFAULT_GRPC;
use crate::terminal::greet;
use clap::{Args, ValueEnum};
use nuthatch_rpc::{Options, Server};
use nuthatch_store::{Durability, Options as StoreOptions};
use nuthatch_units::{bytes, parse_size};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The default of `--memory`, in bytes.
const DEFAULT_MEMORY: u64 = 256 << 20;

const NOTES: &str = "\
The gRPC interface is crates/rpc/proto/store.proto. The server supports reflection and the standard
health checks. Other processes may use the folder at the same time. The other commands of
\"nuthatch store\" accept grpc://HOST:PORT in place of a folder.

An address that other machines can reach requires TLS, and tokens or client certificates. A line of
the file of tokens is \"token NAME read|write SECRET\"; the secret is >TEXT, which clients
send as \"authorization: Bearer TEXT\", or # and the hexadecimal SHA-256 of TEXT.

SIGTERM stops accepting connections and calls; calls in progress have --drain-ms to finish. A second
SIGTERM or SIGINT ends the server at once; acknowledged writes are stored.

SIGHUP reloads the files of --tls-cert, --tls-key, --tls-client-ca, --tokens and --admin-token-file.
If one is invalid, nothing changes and the log says why. Connections stay open, except those with a
client certificate that is no longer accepted. Streams and transactions end if their token was
removed or allows less than before. The flags keep their values, --log included: a change needs a
restart.

Examples:
  nuthatch store serve db                          at 127.0.0.1:7380
  nuthatch store serve db --listen 127.0.0.1:7000 --keep-changes 100000
  nuthatch store serve db --listen 0.0.0.0:7380 --tls-cert c.pem --tls-key k.pem --tokens tokens
  nuthatch store scan grpc://127.0.0.1:7380 --prefix user:

Exit status:
  0  SIGTERM or SIGINT (Ctrl-C) stopped the server
  2  invalid command line, or --insecure is required
  3  any other error, for example: the store is missing, a file is invalid, an address is in use
  101  a thread panicked, which is a bug: restart the server";

/// Serve a store over gRPC
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Serve {
    /// The folder of the store
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Create the store if it does not exist
    #[arg(long)]
    create: bool,
    /// Open the store for reading only, and refuse writes
    #[arg(long, conflicts_with_all = ["create", "keep_changes"])]
    read_only: bool,
    #[command(flatten)]
    network: NetworkArgs,
    /// What a write waits for before it is acknowledged
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "sync")]
    durability: Level,
    /// Maximum number of changes to keep for watches, in at most 4 KiB x N bytes; the newest is
    /// kept even if it alone takes more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep_changes: Option<u64>,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    monitoring: MonitoringArgs,
}

/// The durability of commits.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    /// The disk: no acknowledged write is lost
    Sync,
    /// The disk; a power failure may lose the last commit even if it was acknowledged
    Group,
    /// Nothing: a crash of the machine may lose or damage what was written
    None,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
struct Access {
    /// Address to listen on, host:port; port 0 selects a free port; can be repeated
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_GRPC)]
    #[arg(value_parser = parse_address)]
    listen: Vec<SocketAddr>,
    #[command(flatten)]
    tls: TlsArgs,
    /// A file with the tokens that clients must present
    #[arg(long, value_name = "FILE")]
    tokens: Option<String>,
    /// Allow addresses that other machines can reach without tokens or client certificates
    #[arg(long)]
    insecure: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct Limits {
    /// Memory limit for requests and responses of all clients, at least 1MiB; by default 256MiB
    ///
    /// A limit beyond the memory of the machine, or of the process's control group, is refused.
    /// Where either has less than 341 MiB, the default is three quarters of it.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    memory: Option<u64>,
    /// Maximum length of a message, and so of a value: 4KiB to 1GiB, and at most --memory; by
    /// default 16MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_message)]
    message: Option<u64>,
    /// Maximum number of connections; further ones wait
    ///
    /// At the maximum, the connection that has been idle for longest is closed once it has had no
    /// call for --idle-ms; its client reconnects with the next call. A client has 10 seconds for
    /// the TLS handshake and the beginning of HTTP/2, and 500 ms while another client waits.
    ///
    /// The server raises its limit of open files to the hard limit. If that is too low, it allows
    /// fewer connections and logs a warning with the number.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    connections: u32,
    /// Maximum number of concurrent calls per connection
    #[arg(long, value_name = "N", default_value_t = 128)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    streams: u32,
    /// I/O threads; by default one for each core, up to 8
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Idle time in milliseconds, at least 100, after which a transaction is ended; and after
    /// which, at the maximum number of connections, an idle connection may be closed
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(MIN_LIMIT_MS..))]
    idle_ms: u64,
    /// Maximum duration of a transaction in milliseconds, at least 100
    #[arg(long, value_name = "N", default_value_t = 600_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(MIN_LIMIT_MS..))]
    longest_ms: u64,
    /// Milliseconds that calls in progress have to finish after SIGTERM or SIGINT
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    drain_ms: u64,
}

/// Parses a size of at least `min` bytes and at most `max`.
fn parse_size_within(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let size = parse_size(text)?;
    if size < min {
        return Err(format!("expected at least {}, found {}", bytes(min), bytes(size)));
    }
    if size > max {
        return Err(format!("expected at most {}, found {}", bytes(max), bytes(size)));
    }
    Ok(size)
}

fn parse_memory(text: &str) -> Result<u64, String> {
    parse_size_within(text, Options::MIN_MEMORY, u64::MAX)
}

fn parse_message(text: &str) -> Result<u64, String> {
    let min = Options::MIN_MESSAGE_BYTES as u64;
    parse_size_within(text, min, Options::MAX_MESSAGE_BYTES as u64)
}

impl Serve {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let logs = self.monitoring.start_logs("nuthatch-store")?;
        let memory = self.limits.memory()?;
        let options = self.options()?.memory(memory).connections(self.limits.connections()?);
        let options = options.message_bytes(self.limits.message(memory)?);
        self.monitoring.check(options.problem(), self.access.insecure)?;
        let store = StoreOptions::new().create(self.create).read_only(self.read_only);
        let store = self.network.apply(store.durability(self.durability.into()));
        let store = open_store(&self.path, &store)?;
        if let Some(keep) = self.keep_changes {
            keep_changes(&store, keep)?;
        }
        let process = ServerProcess::begin()?;
        let server =
            Server::start(store, &options).map_err(|error| start_failure("--listen", &error))?;
        let (admin, admin_reloader) = self.monitoring.open_admin(server.metrics(), &logs)?;
        let line = format!("{}: {} of memory", self.path.display(), bytes(memory));
        let scheme = if self.access.tls.cert.is_some() { "grpcs" } else { "grpc" };
        greet(scheme, server.addresses(), admin.addresses(), &line)?;
        server_started();
        let (stopper, reloader) = (server.stopper(), server.reloader());
        let credentials = self.access.credentials();
        process.on_request(move |request| match request {
            Request::Reload => credentials.reload_or_log(&reloader, &admin_reloader),
            Request::Stop => stopper.stop(),
            Request::StopAtOnce => end_at_once(),
        });
        server.wait().map_err(|error| Failure::Error(error.to_string()))?;
        Ok(Outcome::Success)
    }

    fn options(&self) -> Result<Options, Failure> {
        let Access { listen, insecure, .. } = &self.access;
        let Limits { streams, threads, .. } = &self.limits;
        let Limits { idle_ms, longest_ms, drain_ms, .. } = &self.limits;
        let mut options = Options::new(listen.clone())
            .insecure(*insecure)
            .durability(self.durability.into())
            .streams(*streams)
            .idle(Duration::from_millis(*idle_ms))
            .max_transaction(Duration::from_millis(*longest_ms))
            .drain(Duration::from_millis(*drain_ms));
        if let Some(threads) = threads {
            options = options.threads(usize::from(*threads));
        }
        let (tls, tokens) = self.access.credentials().read()?;
        if let Some(tls) = tls {
            options = options.tls(tls);
        }
        if let Some(tokens) = tokens {
            options = options.tokens(tokens);
        }
        Ok(options)
    }
}

impl Limits {
    /// Returns the memory budget. Fails if the process cannot have as much.
    fn memory(&self) -> Result<u64, Failure> {
        let limit = MemoryLimit::of_this_process();
        let Some(memory) = self.memory else {
            return Ok(process::default_memory("memory", DEFAULT_MEMORY, limit.as_ref()));
        };
        match process::check_memory(limit.as_ref(), memory) {
            Ok(()) => Ok(memory),
            Err(problem) => Err(Failure::Usage(format!("--memory: {problem}"))),
        }
    }

    /// Returns the maximum length of a message.
    fn message(&self, memory: u64) -> Result<usize, Failure> {
        match self.message {
            Some(message) if message > memory => {
                let (memory, message) = (bytes(memory), bytes(message));
                let expected = format!("expected at most the memory, {memory}, found {message}");
                Err(Failure::Usage(format!("--message: {expected}; or raise --memory")))
            }
            Some(message) => Ok(usize::try_from(message).unwrap_or(usize::MAX)),
            None => Ok(Options::MESSAGE_BYTES),
        }
    }

    /// Returns how many connections there may be, after raising the limit of open files.
    fn connections(&self) -> Result<usize, Failure> {
        let files = process::raise_file_limit();
        // The spare files of the server, and as many for the store.
        let limit = process::max_connections(files, process::spare_files);
        let limit = limit.map_err(Failure::Error)?;
        let wanted = u64::from(self.connections);
        Ok(process::limit_connections("connections", wanted, limit) as usize)
    }
}

impl Access {
    fn credentials(&self) -> Credentials {
        let TlsArgs { cert, key, client_ca } = self.tls.clone();
        let tls = cert.zip(key).map(|(cert, key)| (cert, key, client_ca));
        Credentials { tls, tokens: self.tokens.clone() }
    }
}

impl From<Level> for Durability {
    fn from(level: Level) -> Self {
        match level {
            Level::Sync => Self::Sync,
            Level::Group => Self::Group,
            Level::None => Self::None,
        }
    }
}
