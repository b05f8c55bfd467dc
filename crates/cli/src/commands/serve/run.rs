//! Runs the servers until a signal ends them.

use super::config_command::tell_settings;
use super::connection_limits::ConnectionLimits;
use super::data_dir::take_data_dir;
use super::listeners::{listeners, not_started, tell_skipped};
use super::memory::cache;
use super::reload::Reloading;
use super::shutdown::Ending;
use super::store_server::{Joined, Stored};
use super::{access, config_rewrite};
use crate::logs::{self, Logs};
use crate::outcome::{Answer, Failure};
use crate::process::ServerProcess;
use crate::settings::{Configuration, Environment, Loaded};
use crate::terminal::{Stdout, metrics_at};
use nuthatch_server::state::{Debugging, Server};
use nuthatch_server::{IoBackend, Options, Running};
use nuthatch_units::bytes;
use std::fmt::Write;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

/// Serves until a signal ends it. `load` reads the settings again.
pub(super) fn serve(
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
    server.rewrite = config_rewrite::rewrite(loaded);
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

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn failure(error: std::io::Error) -> Failure {
    Failure::Error(error.to_string())
}
