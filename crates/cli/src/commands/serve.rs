//! `nuthatch serve`: a cache server, and a store beside it if there is one.

mod access;
mod configuration;
mod data_dir;
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
mod rewrite;
mod show;
mod stored;
mod table;

use super::listening::Stopping;
use super::{Answer, Failure};
use crate::figures::bytes;
use crate::logs;
use crate::streams::{Stdout, tell};
use clap::Args;
use configuration::Configuration;
use data_dir::DataDir;
use environment::Environment;
pub(crate) use exact::parse_duration;
use flags::Flags;
use kind::Kind;
use layers::Loaded;
use nuthatch_cache::{Cache, Eviction, Options as CacheOptions};
use nuthatch_server::admin::Unavailable;
use nuthatch_server::commands::{Debugging, Server};
use nuthatch_server::protocol::mrcache::Framing;
use nuthatch_server::{Address, Listener, Options, Protocol, Reactors, Running};
pub(crate) use reading::{open_to_all, read_text};
use std::fmt::Write;
use std::sync::Arc;
use std::thread::available_parallelism;
use stored::{Joined, Stored};
pub(crate) use table::ADMIN;
use table::{Told, settings};

/// Serve a cache to clients of Redis and memcached
///
/// Keys expire to the millisecond. When the memory is used up, what is asked for least makes room;
/// one pass over many keys does not push out what others ask for (S3-FIFO).
#[derive(Debug, Args)]
#[command(after_long_help = manual::NOTES)]
pub(crate) struct Serve {
    /// A file of settings in TOML, also named by `NUTHATCH_CONFIG`; - is standard input
    ///
    /// Without it no file is read, not nuthatch.toml in this folder either.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Print all settings as such a file, with where each value is from, and exit
    #[arg(long)]
    show_config: bool,
    /// Print them as JSON
    #[arg(long, requires = "show_config")]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let environment = Environment::read(std::env::vars_os()).map_err(Failure::Usage)?;
        for warning in &environment.warnings {
            tell(format_args!("warning: {warning}"));
        }
        let loaded = Loaded::load(self.config.as_deref(), environment, &self.flags)?;
        if self.show_config {
            let text = if self.json { show::json(&loaded) } else { show::toml(&loaded) };
            let mut stdout = Stdout::new();
            stdout.put(text.as_bytes())?;
            stdout.flush()?;
            return Ok(Answer::Whole);
        }
        serve(&loaded)
    }
}

/// Serves until it is told to stop.
fn serve(loaded: &Loaded) -> Result<Answer, Failure> {
    let configuration = &loaded.configuration;
    let users = access::users(loaded)?;
    let stays_closed = access::check_exposure(loaded, &users)?;
    let listeners = listeners(configuration)?;
    let tls = access::tls(loaded)?;
    for warning in access::warnings(loaded) {
        tell(format_args!("warning: {warning}"));
    }
    let _taken = configuration.data_dir.as_deref().map(DataDir::take).transpose()?;
    let threads = threads(configuration);
    let log_format =
        if configuration.log_format == "json" { logs::Format::Json } else { logs::Format::Text };
    let _logs = logs::start(&configuration.log, log_format)?;
    let mut server = Server::new(Arc::new(cache(loaded)?)).with_users(users);
    server.stays_closed = stays_closed;
    server.debug = Debugging::named(configuration.enable_debug_command).unwrap_or_default();
    tell_settings(loaded, &mut server)?;
    server.rewrite = rewrite::rewrite(loaded);
    // Before anybody can connect, so that no signal finds us unprepared.
    let signals = Stopping::with_reload()?;
    let admin = configuration.admin.iter().map(|place| place.address.clone()).collect();
    let options = Options::new(listeners).admin(admin).threads(threads);
    let mut options = options.reactors(reactors(configuration));
    options.tls = tls;
    let stored = Stored::start(loaded)?;
    server.also_told.extend(stored.as_ref().map(Stored::exposition));
    let running = Running::serve(server, &options).map_err(not_started)?;
    greet(&running, stored.as_ref(), configuration.memory, threads)?;
    let stopper = running.stopper();
    let reload_store = stored.as_ref().map(|stored| stored.reload(loaded));
    let reload = move || {
        if let Some(reload) = &reload_store {
            reload();
        }
    };
    signals.then_or_reload(move || stopper.stop(), reload);
    // One that ends takes the other along: half a server is none.
    let stored = stored.map(|stored| stored.join(running.stopper()));
    let ended = running.wait().map_err(failure);
    stored.map_or(Ok(()), Joined::wait)?;
    ended?;
    Ok(Answer::Whole)
}

/// Where to listen, and what is spoken there.
fn listeners(configuration: &Configuration) -> Result<Vec<Listener>, Failure> {
    let framing = if configuration.mrcache_reply == "ver6" { Framing::Ver6 } else { Framing::Len4 };
    let all = [
        (Protocol::Resp, &configuration.resp),
        (Protocol::Memcache, &configuration.memcache),
        (Protocol::Pmc, &configuration.pmc),
        (Protocol::Mrcache(framing), &configuration.mrcache),
    ];
    let listeners = all.into_iter().flat_map(|(protocol, places)| {
        places.iter().map(move |place| {
            let listener = Listener::new(protocol, place.address.clone());
            if place.tls { listener.with_tls() } else { listener }
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
    let eviction = if eviction == "none" { Eviction::None } else { Eviction::S3Fifo };
    let options = CacheOptions::new().memory(memory).eviction(eviction);
    Cache::new(options)
        .map_err(|error| Failure::Usage(format!("{}: {error}", loaded.source("memory").named())))
}

fn reactors(configuration: &Configuration) -> Reactors {
    match configuration.event_loop {
        "io_uring" => Reactors::Uring,
        "epoll" => Reactors::Epoll,
        _ => Reactors::Auto,
    }
}

fn threads(configuration: &Configuration) -> usize {
    let cores = || available_parallelism().map_or(1, usize::from);
    configuration.threads.map_or_else(cores, |threads| threads as usize)
}

/// Tells the server what `CONFIG` shows and changes of the settings.
fn tell_settings(loaded: &Loaded, server: &mut Server) -> Result<(), Failure> {
    let mut configuration = loaded.configuration.clone();
    for setting in settings() {
        let Some(text) = setting.kind.redis(&mut configuration) else { continue };
        match (setting.told, setting.kind) {
            (Told::AndChanged(name), _) => {
                server.settings.change(name, &text).map_err(|problem| {
                    Failure::Usage(format!("{}: {problem}", loaded.source(setting.name).named()))
                })?;
            }
            // The server knows the others itself.
            (Told::As(name), Kind::Path(_)) => server.facts.push((name, text)),
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
    let (memory, reactor) = (bytes(memory), running.reactor());
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

/// Why the server did not start. The admin port is often one that nobody has asked for by name.
fn not_started(error: std::io::Error) -> Failure {
    let admin = error.get_ref().and_then(|inner| inner.downcast_ref::<Unavailable>());
    if admin.is_some() {
        let advice = "--admin ADDR chooses another, --admin off does without";
        return Failure::Error(format!("{error}; {advice}"));
    }
    failure(error)
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn failure(error: std::io::Error) -> Failure {
    Failure::Error(error.to_string())
}
