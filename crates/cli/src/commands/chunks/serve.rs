//! `nuthatch chunks serve`: an HTTP cache in front of an origin.

use super::folder_args::FolderArgs;
use super::freshness_args::FreshnessArgs;
use super::header_args::HeaderArgs;
use super::limit_args::LimitArgs;
use crate::arguments::{
    MIN_LIMIT_MS, MonitoringArgs, TlsArgs, parse_address, read_tokens, server_tls, start_failure,
};
use crate::logs::{server_started, warn};
use crate::outcome::{Failure, Outcome};
use crate::process::{self, MemoryLimit, Request, ServerProcess, end_at_once};
use crate::terminal::greet;
use clap::Args;
use nuthatch_chunk_server::{Options, Server};
use nuthatch_chunks::Options as FolderOptions;
use nuthatch_origins::{Prefix, Settings};
use nuthatch_units::{bytes, parse_size, parse_time};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The environment variable with the address of the origin, which can have a password.
const ORIGIN_VARIABLE: &str = "NUTHATCH_ORIGIN";

const NOTES: &str = "\
The path of a request is appended to the origin's address. Paths with `.`, `..`, encoded slashes or
empty names are refused, so a client cannot leave the origin's address. The server supports GET and
HEAD with Range (up to 32 ranges; several are multipart/byteranges), If-Match, If-None-Match,
If-Modified-Since, If-Unmodified-Since and If-Range. The header Cache-Status shows how much of the
response came from the cache: hit, fwd=miss, or fwd=partial with the percentage that came from the
cache; for a response of more than 1,024 blocks, it is the percentage of the first 1,024. A
signature in the query is sent to the origin and never stored.

The server requests the version of an object from the origin at each request; --max-age sets how
long a version is reused. It reads a response from the origin only as fast as the client reads it.

While the origin is unavailable (unreachable, or it responds with 429, 500, 502, 503 or 504),
--max-stale serves the version that it last confirmed. Such a response has the header Age, with the
seconds since then, and a negative ttl in Cache-Status. The server tries the origin again every five
seconds. With --offline it never contacts the origin: a request for bytes that are not in the cache
gets status 504.

If the cache folder is removed while the server runs, the server creates it again, with the limit
and the sharing that it had. While the folder cannot be opened, all bytes come from the origin.
While the server may not write to it, it is read, but nothing is stored in it (metric
nuthatch_chunks_cache_read_only). While blocks are not kept for another cause (the disk is full,
another process has the lock of the folder, too many files are open), they are sent to clients and
counted by cause (metric nuthatch_chunks_not_kept_total). The server logs a warning when such a
state begins and a line when it ends, and at most five lines of each kind in ten seconds. --limit is
not applied while the folder cannot be opened, and is an error if the server may not write to the
folder and the folder has another limit.

After SIGTERM or SIGINT the server accepts no connections, responses in progress have --drain-ms to
finish, and /healthz at the admin endpoint returns 503. A second signal ends the server at once.

SIGHUP reloads certificate, key, client CA, tokens, the admin token and the files of --header. If a
file is invalid, nothing changes and the log says why. Connections stay open, except those whose
last request had a token that was removed, and those with a client certificate that is no longer
accepted. The flags keep their values, --log included: a change needs a restart.

An address that other machines can reach requires TLS, and tokens or client certificates. A line of
the file of tokens is \"token NAME read SECRET\"; the secret is >TEXT, which clients
send as \"Authorization: Bearer TEXT\", or # and the hexadecimal SHA-256 of TEXT.

Examples:
  nuthatch chunks serve --origin https://host/data/ --limit 50GiB
  curl -r 0-99 http://127.0.0.1:7381/table.parquet
  nuthatch chunks serve --origin s3://bucket/models/ --listen 127.0.0.1:8000 --admin 127.0.0.1:9465
  nuthatch chunks serve --origin https://host/ --listen 0.0.0.0:7381 --tls-cert c.pem \\
    --tls-key k.pem --tokens tokens

Exit status:
  0  SIGTERM or SIGINT (Ctrl-C) stopped the server
  2  invalid command line, --insecure is required, or --limit or --share-with-group cannot be
     applied because the server may not write to the folder
  3  any other error, for example: a file is invalid, an address is in use
  101  a thread panicked, which is a bug: restart the server";

/// Serve an HTTP cache in front of an origin
#[derive(Clone, Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Serve {
    /// Base address of the objects, as in "get"; paths of requests are appended to it
    ///
    /// Default: `$NUTHATCH_ORIGIN`. Use the variable for an address with a password: other users
    /// can see the arguments of a command.
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    #[command(flatten)]
    headers: HeaderArgs,
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    limit: LimitArgs,
    /// How long the last response of the origin about an object is reused without a new check
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    max_age: Duration,
    #[command(flatten)]
    freshness: FreshnessArgs,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    limits: ServerLimits,
    #[command(flatten)]
    monitoring: MonitoringArgs,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Access")]
struct Access {
    /// Address to listen on, host:port; port 0 selects a free port; can be repeated
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7381")]
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

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
struct ServerLimits {
    /// Maximum number of connections; further ones wait
    ///
    /// At the maximum, a waiting connection replaces one that has had no request for 500 ms.
    ///
    /// The server raises its limit of open files to the hard limit. If that is too low, or if the
    /// memory for all connections exceeds the memory of the machine or of the process's control
    /// group, the server allows fewer connections and logs a warning with the number.
    #[arg(long, value_name = "N", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    connections: u32,
    /// Maximum read-ahead per client: bytes fetched from the origin and held in memory
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = parse_size)]
    read_ahead: u64,
    /// Maximum length of an object whose origin reports no length; it is held in memory
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = parse_size)]
    max_unsized: u64,
    /// Maximum retries of a request to the origin after a transient failure
    #[arg(long, value_name = "N", default_value_t = 5)]
    retries: u32,
    /// I/O threads; by default one for each core, up to 8
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Milliseconds a client may take to send its next request or to read more of a response, at
    /// least 100
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(MIN_LIMIT_MS..))]
    idle_ms: u64,
    /// Milliseconds the origin has to send the first block (at most 1 MiB) of a response, with
    /// retries; at least 100
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(MIN_LIMIT_MS..))]
    origin_ms: u64,
    /// Milliseconds that responses in progress have to finish after SIGTERM or SIGINT
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    drain_ms: u64,
}

/// Memory of one connection in bytes, in addition to its read-ahead.
const CONNECTION_BYTES: u64 = 256 << 10;

/// Number of files that the server needs for its threads, the folder and connections to the origin.
const WORKING_FILES: u64 = 16;

/// The maximum numbers that files and memory of this process allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResourceLimits {
    connections: usize,
    /// Segments of the cache that stay open for reading.
    segment_files: usize,
}

impl ResourceLimits {
    /// Raises the limit of open files, and returns what that and the memory allow.
    fn of_this_process(bounds: &ServerLimits) -> Result<Self, Failure> {
        let files = process::raise_file_limit();
        let limit = MemoryLimit::of_this_process();
        let each = CONNECTION_BYTES.saturating_add(bounds.read_ahead);
        process::check_memory(limit.as_ref(), each)
            .map_err(|problem| Failure::Usage(format!("--read-ahead: {problem}")))?;
        let segment_files = |limit: u64| (limit / 4).min(FolderOptions::OPEN_FILES as u64);
        let others = |limit| segment_files(limit) + WORKING_FILES;
        let connections = process::max_connections(files, others).map_err(Failure::Error)?;
        let wanted = u64::from(bounds.connections);
        let connections = process::limit_connections("connections", wanted, connections);
        let connections = match &limit {
            Some(limit) if connections > limit.bytes / each => {
                let (fewer, each) = (limit.bytes / each, bytes(each));
                let (all, source) = (bytes(limit.bytes), &limit.source);
                warn(format_args!(
                    "connections is {fewer} instead of {connections}: each may take \
                     {each} of memory, and only {all} are available ({source}); a smaller \
                     --read-ahead allows more"
                ));
                fewer
            }
            _ => connections,
        };
        Ok(Self { connections: connections as usize, segment_files: segment_files(files) as usize })
    }
}

impl Serve {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let prefix = self.prefix()?;
        let logs = self.monitoring.start_logs("nuthatch-chunks")?;
        let options = self.options()?;
        self.monitoring.check(options.problem(), self.access.insecure)?;
        let ServerLimits { read_ahead, max_unsized, retries, .. } = self.limits;
        let settings = Settings::new()
            .max_age(self.max_age)
            .read_ahead(read_ahead)
            .max_unsized_len(max_unsized)
            .retries(retries);
        let settings = self.freshness.apply(settings);
        let limits = ResourceLimits::of_this_process(&self.limits)?;
        let options = options.connections(limits.connections);
        let folder = self.limit.options().open_files(limits.segment_files);
        let cache = self.folder.open_or_create(
            self.limit,
            &folder,
            settings,
            self.freshness.is_offline(),
        )?;
        // The log already has the problem of a folder that could not be opened.
        for warning in cache.chunks().iter().flat_map(|chunks| chunks.warnings()) {
            tracing::warn!(target: "nuthatch::chunks", "{warning}");
        }
        let process = ServerProcess::begin()?;
        let shown = prefix.to_string();
        let server = Server::start(cache.clone(), prefix, &options);
        let server = server.map_err(|error| start_failure("--listen", &error))?;
        let (admin, admin_reloader) = self.monitoring.open_admin(server.metrics(), &logs)?;
        let cached = match cache.chunks() {
            Some(chunks) => {
                let (folder, limit) = (chunks.path().display(), bytes(chunks.stat().limit));
                format!("{shown}: up to {limit} in {folder}")
            }
            None => format!("{shown}: without a folder"),
        };
        let scheme = if self.access.tls.cert.is_some() { "https" } else { "http" };
        greet(scheme, server.addresses(), admin.addresses(), &cached)?;
        server_started();
        let (stopper, reloader, serve) = (server.stopper(), server.reloader(), self.clone());
        let reload = move || {
            let read = || Ok((serve.options()?, admin_reloader.read()?));
            let reload = |(options, rules)| {
                reloader.replace(&options).map_err(|error| error.to_string())?;
                admin_reloader.apply(rules);
                Ok(())
            };
            if let Err(error) = read().map_err(Failure::into_message).and_then(reload) {
                tracing::error!(target: "nuthatch::chunks", %error,
                    "reload failed; the previous credentials stay in use");
            }
        };
        process.on_request(move |request| match request {
            Request::Reload => reload(),
            Request::Stop => stopper.stop(),
            Request::StopAtOnce => end_at_once(),
        });
        server.wait().map_err(|error| Failure::Error(error.to_string()))?;
        Ok(Outcome::Success)
    }

    fn prefix(&self) -> Result<Prefix, Failure> {
        let (name, address) = match (&self.origin, std::env::var(ORIGIN_VARIABLE)) {
            (Some(address), _) => ("--origin", address.clone()),
            (None, Ok(address)) => (ORIGIN_VARIABLE, address),
            (None, Err(_)) => {
                let problem = format!("expected --origin or {ORIGIN_VARIABLE}, found neither");
                return Err(Failure::Usage(problem));
            }
        };
        Prefix::parse(&address).map_err(|problem| Failure::Usage(format!("{name}: {problem}")))
    }

    fn options(&self) -> Result<Options, Failure> {
        let Access { listen, tls, tokens, insecure } = &self.access;
        let ServerLimits { threads, idle_ms, origin_ms, drain_ms, .. } = &self.limits;
        let mut options = Options::new(listen.clone())
            .access(self.headers.access()?)
            .insecure(*insecure)
            .idle(Duration::from_millis(*idle_ms))
            .origin_timeout(Duration::from_millis(*origin_ms))
            .drain(Duration::from_millis(*drain_ms));
        if let Some(threads) = threads {
            options = options.threads(usize::from(*threads));
        }
        if let TlsArgs { cert: Some(cert), key: Some(key), client_ca } = tls {
            let tls = server_tls(cert, key, client_ca.as_deref())?;
            options = options.tls(tls.config()).certificate_expiry(tls.expiry());
            if tls.needs_client_certificate() {
                options = options.client_certificates(Arc::new(move |all| tls.accepts(all)));
            }
        }
        if let Some(file) = tokens {
            let tokens = read_tokens(file)?;
            options = options.token_check(Arc::new(move |token| tokens.admits(token)));
        }
        Ok(options)
    }
}
