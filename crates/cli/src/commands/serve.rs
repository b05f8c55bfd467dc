//! `nuthatch serve`: a cache server, and a store beside it if there is one.

mod access;
mod checks;
mod configuration;
mod data_dir;
mod ending;
mod environment;
mod exact;
mod file;
mod flags;
mod given;
mod kind;
mod layers;
mod manual;
mod nearest;
mod origin;
#[cfg(test)]
mod pages;
mod place;
mod reading;
mod reload;
mod rewrite;
mod show;
mod stored;
mod table;

use super::process::ServerProcess;
use super::resources::{self, MemoryLimit};
use super::{Answer, Failure};
use crate::figures::bytes;
use crate::logs::{self, Logs};
use crate::streams::Stdout;
use clap::Args;
use configuration::Configuration;
use data_dir::DataDir;
use ending::Ending;
use environment::Environment;
pub(crate) use exact::parse_duration;
use flags::Flags;
use kind::Kind;
use layers::Loaded;
use nuthatch_cache::{Cache, Error as CacheError, Eviction, Options as CacheOptions};
use nuthatch_rpc::Options as StoreOptions;
use nuthatch_server::admin::BindError;
use nuthatch_server::mrcache::Framing;
use nuthatch_server::state::Debugging;
use nuthatch_server::state::Server;
use nuthatch_server::{Address, IoBackend, ListenError, Listener, Options, Protocol, Running};
pub(crate) use reading::{open_to_all, read_text};
use reload::Reloading;
use std::fmt::Write;
use std::mem;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use stored::{Joined, Stored};
pub(crate) use table::ADMIN;
use table::{Told, settings};

/// Serve a cache to clients of Redis and memcached
///
/// Expiry has millisecond resolution. When the memory is used up, the server evicts the keys that
/// are read least; a single scan over many keys does not displace the hot ones (S3-FIFO).
#[derive(Debug, Args)]
#[command(after_long_help = manual::NOTES)]
pub(crate) struct Serve {
    /// Settings file in TOML, or `NUTHATCH_CONFIG`; - is standard input
    ///
    /// Without it no file is read, not even nuthatch.toml in the working directory.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Print all settings as a settings file, with the source of each value, and exit
    #[arg(long)]
    show_config: bool,
    /// Print the settings as JSON
    #[arg(long, requires = "show_config")]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let mut environment = Environment::read(std::env::vars_os()).map_err(Failure::Usage)?;
        let warnings = mem::take(&mut environment.warnings);
        let loaded = Loaded::load(self.config.as_deref(), environment, &self.flags);
        // Warnings are records of the log if it has JSON lines.
        let logs = loaded.as_ref().ok().filter(|_| !self.show_config).map(start_logs);
        let logs = logs.transpose()?;
        for warning in warnings {
            logs::warn(warning);
        }
        let mut loaded = loaded?;
        checks::check(&loaded)?;
        let Some(logs) = logs else {
            let text = if self.json { show::json(&loaded) } else { show::toml(&loaded) };
            let mut stdout = Stdout::new();
            stdout.put(text.as_bytes())?;
            stdout.flush()?;
            return Ok(Answer::Whole);
        };
        set_default_memory(&mut loaded);
        self.serve(&loaded, &logs)
    }

    /// Serves until a signal ends it.
    fn serve(&self, loaded: &Loaded, logs: &Logs) -> Result<Answer, Failure> {
        let load = {
            let (file, flags) = (self.config.clone(), self.flags.clone());
            move |environment| Loaded::load(file.as_deref(), environment, &flags)
        };
        serve(loaded, logs, load)
    }
}

/// Starts the log with the format and the filter of the settings.
fn start_logs(loaded: &Loaded) -> Result<Logs, Failure> {
    let Configuration { log, log_format, .. } = &loaded.configuration;
    let format = if *log_format == "json" { logs::Format::Json } else { logs::Format::Text };
    logs::start(log, format)
}

/// Serves until a signal ends it. `load` reads the settings again.
fn serve(
    loaded: &Loaded,
    logs: &Logs,
    load: impl Fn(Environment) -> Result<Loaded, Failure> + Send + 'static,
) -> Result<Answer, Failure> {
    let configuration = &loaded.configuration;
    let users = access::users(loaded)?;
    let must_keep_password = access::check_exposure(loaded, Some(users.must_log_in()))?;
    let listeners = listeners(loaded)?;
    let tls = access::tls(loaded)?;
    for warning in access::warnings(loaded) {
        logs::warn(warning);
    }
    let _taken = take_data_dir(loaded)?;
    let threads = threads(configuration);
    let mut server = Server::new(Arc::new(cache(loaded)?)).with_users(users);
    server.must_keep_password = must_keep_password;
    server.debug = Debugging::named(configuration.enable_debug_command).unwrap_or_default();
    tell_settings(loaded, &mut server)?;
    let limits = ConnectionLimits::of_this_process(loaded, threads, listeners.len())?;
    limits.apply(loaded, &server)?;
    server.rewrite = rewrite::rewrite(loaded);
    let process = ServerProcess::begin()?;
    let admin = configuration.admin.iter().map(|place| place.address.clone()).collect();
    let options = Options::new(listeners).admin(admin).threads(threads);
    let mut options = options.io_backend(reactors(configuration));
    options.tls = tls;
    options.admin_optional = !loaded.is_given("admin");
    let stored = Stored::start(loaded, limits.store)?;
    server.extra_metrics.extend(stored.as_ref().map(Stored::exposition));
    let running = Running::serve(server, &options).map_err(|error| not_started(loaded, &error))?;
    tell_skipped(loaded, &running);
    greet(&running, stored.as_ref(), configuration.memory, threads)?;
    logs::server_runs();
    let store_reloader = stored.as_ref().map(Stored::reloader);
    // One that ends takes the other along: half a server is none.
    let patience = Duration::from_millis(configuration.drain_ms);
    let stored = stored.map(|stored| stored.join(running.stopper(), patience));
    let store = stored.as_ref().map(Joined::stopper);
    let ending = Ending { cache: running.stopper(), store, patience };
    let mut reloading = Reloading {
        loaded: loaded.clone(),
        server: running.reloader(),
        log: logs.filter(),
        clients_limit: limits.clients,
        store: store_reloader,
    };
    process.on_request(move |request| ending.handle(request, || reloading.reload(&load)));
    let ended = running.wait().map_err(failure);
    stored.map_or(Ok(()), Joined::wait)?;
    ended?;
    Ok(Answer::Whole)
}

/// Where to listen, and what is spoken there.
fn listeners(loaded: &Loaded) -> Result<Vec<Listener>, Failure> {
    let configuration = &loaded.configuration;
    let framing = if configuration.mrcache_reply == "ver6" { Framing::Ver6 } else { Framing::Len4 };
    let all = [
        (Protocol::Resp, &configuration.resp),
        (Protocol::Memcache, &configuration.memcache),
        (Protocol::Pmc, &configuration.pmc),
        (Protocol::Mrcache(framing), &configuration.mrcache),
    ];
    let listeners = all.into_iter().flat_map(|(protocol, places)| {
        places.iter().map(move |place| {
            let mut listener = Listener::new(protocol, place.address.clone());
            listener.tls = place.tls;
            listener.optional = protocol == Protocol::Memcache && !loaded.is_given("memcache");
            listener
        })
    });
    let listeners: Vec<_> = listeners.collect();
    if listeners.is_empty() {
        return Err(Failure::Usage("expected an address to listen at, found none".to_owned()));
    }
    Ok(listeners)
}

fn cache(loaded: &Loaded) -> Result<Cache, Failure> {
    let Configuration { memory, eviction, .. } = loaded.configuration;
    let all = memory.saturating_add(store_memory(&loaded.configuration));
    let limit = MemoryLimit::of_this_process();
    resources::check_memory(limit.as_ref(), all)
        .map_err(|problem| loaded.invalid("memory", problem))?;
    let eviction = if eviction == "none" { Eviction::None } else { Eviction::S3Fifo };
    let options = CacheOptions::new().memory(memory).eviction(eviction);
    Cache::new(options).map_err(|error| {
        let problem = match error {
            CacheError::Options { option: "memory", expected, .. } => {
                format!("expected {expected}, found {}; give a size such as 4GiB", bytes(memory))
            }
            error => error.to_string(),
        };
        loaded.invalid("memory", problem)
    })
}

/// Locks the folder of `data-dir` for this server, if there is one.
fn take_data_dir(loaded: &Loaded) -> Result<Option<DataDir>, Failure> {
    let Some(path) = &loaded.configuration.data_dir else { return Ok(None) };
    let named = loaded.source("data-dir").named();
    let taken = DataDir::take(path);
    taken.map(Some).map_err(|problem| Failure::Error(format!("{named}: {problem}")))
}

/// Returns the budget of the store; 0 without a store.
fn store_memory(configuration: &Configuration) -> u64 {
    configuration.store.as_ref().map_or(0, |_| configuration.store_memory)
}

fn reactors(configuration: &Configuration) -> IoBackend {
    match configuration.event_loop {
        "io_uring" => IoBackend::Uring,
        "epoll" => IoBackend::Epoll,
        _ => IoBackend::Auto,
    }
}

fn threads(configuration: &Configuration) -> usize {
    let cores = || available_parallelism().map_or(1, usize::from);
    configuration.threads.map_or_else(cores, |threads| threads as usize)
}

/// Lowers the default budget where this process cannot have as much.
fn set_default_memory(loaded: &mut Loaded) {
    if !loaded.is_given("memory") {
        let limit = MemoryLimit::of_this_process();
        let limit = limit.map(|limit| limit.beside(store_memory(&loaded.configuration)));
        let memory = &mut loaded.configuration.memory;
        *memory = resources::default_memory("memory", *memory, limit.as_ref());
    }
}

/// Files that one thread opens besides its listening sockets: its ring or epoll instance, and what
/// wakes it.
const FILES_PER_THREAD: u64 = 3;

/// The part of all connections that clients of the store may have at least, where there are few.
const STORE_RATIO: u64 = 4;

/// How many connections there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionLimits {
    /// Connections of clients of the cache.
    clients: u64,
    /// Connections of clients of the store, if there is one.
    store: usize,
}

impl ConnectionLimits {
    /// Raises the limit of open files, and returns what it allows.
    fn of_this_process(loaded: &Loaded, threads: usize, listeners: usize) -> Result<Self, Failure> {
        let has_store = loaded.configuration.store.is_some();
        let files = resources::raise_file_limit();
        let others = threads as u64 * (FILES_PER_THREAD + listeners as u64);
        Self::of(files, others, has_store).map_err(Failure::Error)
    }

    /// Shares the connections that a limit of open files allows: one in four is kept for clients of
    /// the store, up to the limit of the gRPC server.
    fn of(file_limit: u64, others: u64, has_store: bool) -> Result<Self, String> {
        if !has_store {
            let clients = resources::max_connections(file_limit, |_| others)?;
            return Ok(Self { clients, store: 0 });
        }
        // The store's files, and its first connection.
        let others = |limit| others + resources::spare_files(limit) + 1;
        let all = resources::max_connections(file_limit, others)?;
        let more = (StoreOptions::CONNECTIONS as u64 - 1).min(all / STORE_RATIO);
        Ok(Self { clients: all - more, store: more as usize + 1 })
    }

    /// Sets how many clients the cache accepts.
    fn apply(self, loaded: &Loaded, server: &Server) -> Result<(), Failure> {
        server.settings.limit_max_clients(self.clients);
        let clients = max_clients(loaded, self.clients);
        server.settings.change("maxclients", &clients.to_string()).map_err(Failure::Error)
    }
}

/// Returns how many clients there may be: as configured, or fewer, with a warning.
fn max_clients(loaded: &Loaded, limit: u64) -> u64 {
    resources::limit_connections("max-clients", loaded.configuration.max_clients, limit)
}

/// Returns the settings that change while the server runs, by Redis's names.
fn changeable_settings(loaded: &Loaded) -> Vec<(&'static str, String)> {
    let mut configuration = loaded.configuration.clone();
    let changeable = settings().filter_map(|setting| match setting.told {
        Told::AndChanged(name) => Some((name, setting.kind.redis(&mut configuration)?)),
        Told::As(_) | Told::Not => None,
    });
    changeable.collect()
}

/// Tells the server what `CONFIG` shows and changes of the settings.
fn tell_settings(loaded: &Loaded, server: &mut Server) -> Result<(), Failure> {
    let mut configuration = loaded.configuration.clone();
    for setting in settings() {
        let Some(text) = setting.kind.redis(&mut configuration) else { continue };
        match (setting.told, setting.kind) {
            (Told::AndChanged(name), _) => {
                let changed = server.settings.change(name, &text);
                changed.map_err(|problem| loaded.invalid(setting.name, problem))?;
            }
            // The server knows the others itself.
            (Told::As(name), Kind::Path(_)) => server.fixed_settings.push((name, text)),
            (Told::As(_) | Told::Not, _) => {}
        }
    }
    Ok(())
}

fn greet(
    running: &Running,
    stored: Option<&Stored>,
    memory: u64,
    threads: usize,
) -> Result<(), Failure> {
    let mut text = String::new();
    for listener in running.listeners() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "listening at {listener}");
    }
    for address in stored.into_iter().flat_map(Stored::addresses) {
        let _ = writeln!(text, "listening at {address} for clients of the store");
    }
    text.push_str(&metrics_at(running.admin()));
    let s = if threads == 1 { "" } else { "s" };
    let (memory, reactor) = (bytes(memory), running.io_backend());
    let _ = writeln!(text, "{memory} of memory, {threads} thread{s} on {reactor}");
    let mut stdout = Stdout::new();
    stdout.put(text.as_bytes())?;
    stdout.flush()
}

/// Lines that tell where metrics are.
pub(crate) fn metrics_at(addresses: &[Address]) -> String {
    let lines = addresses.iter().map(|address| match address {
        Address::Tcp(address) => format!("metrics at http://{address}/metrics\n"),
        Address::Unix(_) => format!("metrics at {address}, path /metrics\n"),
    });
    lines.collect()
}

/// Warns of the addresses that nobody has configured and that are in use.
fn tell_skipped(loaded: &Loaded, running: &Running) {
    let is_admin_skipped = running.admin().is_empty() && !loaded.configuration.admin.is_empty();
    let admin = loaded.configuration.admin.iter().filter(|_| is_admin_skipped);
    let listeners = running.skipped().iter();
    let skipped = listeners
        .map(|listener| (setting_of(listener.protocol), listener.address.to_string()))
        .chain(admin.map(|place| ("admin", place.to_string())));
    for (name, address) in skipped {
        logs::warn(format_args!(
            "{name} {address} is in use: the server goes on without it; --{name} ADDR chooses \
             another, --{name} off ends this warning"
        ));
    }
}

/// Returns the setting with the addresses of a protocol.
fn setting_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Resp => "resp",
        Protocol::Memcache => "memcache",
        Protocol::Pmc => "pmc",
        Protocol::Mrcache(_) => "mrcache",
    }
}

/// Why the server did not start: an address that cannot be listened at is named with its setting.
fn not_started(loaded: &Loaded, error: &std::io::Error) -> Failure {
    let inner = error.get_ref();
    let listener = inner.and_then(|inner| inner.downcast_ref::<ListenError>());
    let admin = inner.and_then(|inner| inner.downcast_ref::<BindError>());
    let name = match (listener, admin) {
        (Some(ListenError { listener, .. }), _) => setting_of(listener.protocol),
        (None, Some(_)) => "admin",
        (None, None) => return Failure::Error(error.to_string()),
    };
    let at = loaded.source(name).named();
    let advice = format!("--{name} ADDR chooses another address, --{name} off does without");
    Failure::Error(format!("{at}: {error}; {advice}"))
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn failure(error: std::io::Error) -> Failure {
    Failure::Error(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_server::ListenError;
    use rustix::io::Errno;

    #[test]
    fn a_default_port_in_use_is_named_with_its_setting_and_the_flag() {
        let Ok(loaded) = Loaded::load(None, Environment::default(), &Flags::default()) else {
            panic!("the default settings")
        };
        let in_use = || std::io::Error::from(Errno::ADDRINUSE);
        let listener = listeners(&loaded).ok().and_then(|listeners| listeners.into_iter().next());
        let error = ListenError { listener: listener.expect("that of Redis"), error: in_use() };
        let Failure::Error(message) = not_started(&loaded, &error.into()) else {
            panic!("a failure")
        };
        let expected = "default: resp: 127.0.0.1:6379: Address already in use (os error 98); \
                        --resp ADDR chooses another address, --resp off does without";
        assert_eq!(message, expected);
    }

    /// The store's clients were not counted: with few files they took those of the cache's.
    #[test]
    fn clients_of_the_store_count_against_the_limit_of_open_files() {
        for files in [100, 1024, 4096, 1 << 20] {
            let alone = ConnectionLimits::of(files, 6, false).expect("room").clients;
            let both = ConnectionLimits::of(files, 6, true).expect("room");
            assert!(both.clients + (both.store as u64) < alone, "{files}: {both:?} {alone}");
            assert!(both.clients > 0 && (1..=1024).contains(&both.store), "{files}: {both:?}");
        }
        assert_eq!(ConnectionLimits::of(1 << 20, 6, true).expect("room").store, 1024);
    }
}
