//! Runs the servers until a signal ends them.

use super::cluster::{ClusterThread, item_files};
use super::compression::compression;
use super::config_command::pass_settings;
use super::connection_limits::ConnectionLimits;
use super::data_dir::lock_data_dir;
use super::disk::disk;
use super::listeners::{listeners, start_failure, warn_of_addresses};
use super::memory::cache;
use super::node_slots::kept_slots;
use super::reload::ReloadState;
use super::shutdown::Shutdown;
use super::snapshots::snapshots;
use super::store_server::{StoreServer, StoreThread};
use super::warm_restart::warm_restart;
use super::{access, cluster, config_rewrite};
use crate::logs::{self, Logs};
use crate::outcome::{Failure, Outcome};
use crate::process::{ServerProcess, start_watchdog};
use crate::settings::{Environment, LoadedSettings, Settings};
use crate::terminal::{Stdout, metrics_at};
use nuthatch_listen::admin::Access;
use nuthatch_server::state::{Debugging, Exposition, Server};
use nuthatch_server::{IoBackend, Listener, Options, Running, Tls};
use nuthatch_units::bytes;
use std::fmt::Write;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

/// Serves until a signal ends it. `load` reads the settings again.
pub(super) fn serve(
    loaded: &LoadedSettings,
    logs: &Logs,
    load: impl Fn(Environment) -> Result<LoadedSettings, Failure> + Send + 'static,
) -> Result<Outcome, Failure> {
    let settings = &loaded.settings;
    let users = access::users(loaded)?;
    let must_keep_password = access::check_exposure(loaded, Some(users.must_log_in()))?;
    let listeners = listeners(loaded)?;
    let tls = access::tls(loaded)?;
    for warning in access::warnings(loaded) {
        logs::warn(warning);
    }
    let _data_dir = lock_data_dir(loaded)?;
    let compression = compression(loaded)?;
    let threads = threads(settings);
    // A signal from here on stops the server in an orderly way: it must not end while its dump is
    // open.
    let process = ServerProcess::begin()?;
    // Before the cache, which takes memory.
    let snapshots = snapshots(loaded)?;
    let kept = kept_slots(loaded)?;
    let warm_restart = warm_restart(loaded, kept.as_ref())?;
    let disk = disk(loaded, compression.as_ref(), kept.as_ref())?;
    let cache = match &disk {
        Some(disk) => Arc::clone(disk.cache()),
        None => Arc::new(cache(loaded, warm_restart.as_deref())?),
    };
    let node = cluster::node(loaded, &cache, item_files(disk.clone(), warm_restart.clone()), kept)?;
    let mut server = Server::new(cache).with_users(users);
    server.cluster = node.as_ref().map(|node| Arc::clone(&node.cluster));
    server.snapshots = snapshots;
    server.warm_restart = warm_restart;
    server.disk = disk;
    server.compression = compression.unwrap_or_default();
    server.must_keep_password = must_keep_password;
    apply(loaded, &mut server)?;
    let limits = ConnectionLimits::of_this_process(loaded, threads, listeners.len())?;
    limits.apply(loaded, &server)?;
    let options = options(loaded, listeners, tls)?.threads(threads);
    let stored = StoreServer::start(loaded, limits.store)?;
    add_reports(&mut server, stored.as_ref(), logs, options.tls.is_some());
    let running =
        Running::serve(server, &options).map_err(|error| start_failure(loaded, &error))?;
    warn_of_addresses(loaded, &running);
    let node = node.map(|node| node.join(loaded, &running)).transpose()?;
    greet(&running, stored.as_ref(), settings.memory, threads)?;
    watch(&running, logs);
    let store_reloader = stored.as_ref().map(StoreServer::reloader);
    // If one server ends, the other one is stopped, too.
    let drain_time = Duration::from_millis(settings.drain_ms);
    let stored = stored.map(|stored| stored.join(running.stopper(), drain_time));
    let store = stored.as_ref().map(StoreThread::stopper);
    let drain = node.as_ref().map(ClusterThread::drain);
    let ending = Shutdown { cache: running.stopper(), store, drain_time, cluster: drain };
    let mut reloading = ReloadState {
        loaded: loaded.clone(),
        server: running.reloader(),
        admin: options.admin_access,
        log: logs.filter(),
        clients_limit: limits.clients,
        store: store_reloader,
        etcd: node.as_ref().map(ClusterThread::reloader),
        cluster: node.as_ref().map(ClusterThread::cluster),
    };
    process.on_request(move |request| ending.handle(request, || reloading.reload(&load)));
    let ended = wait(running, node);
    stored.map_or(Ok(()), StoreThread::wait)?;
    ended.map(|()| Outcome::Success)
}

/// Applies settings that are values only.
fn apply(loaded: &LoadedSettings, server: &mut Server) -> Result<(), Failure> {
    let settings = &loaded.settings;
    server.max_dump_time = Duration::from_millis(settings.dump_ms);
    server.rewrite = config_rewrite::rewrite(loaded);
    server.debug = Debugging::named(settings.enable_debug_command).unwrap_or_default();
    pass_settings(loaded, server)
}

/// Waits until the cache server has stopped, and then leaves the cluster.
fn wait(running: Running, node: Option<ClusterThread>) -> Result<(), Failure> {
    let ended = running.wait().map_err(failure);
    if let Some(node) = node {
        node.leave();
    }
    ended
}

/// Raises the limit of open files, and returns how many clients of the cache it allows.
pub(in crate::commands) fn possible_clients(loaded: &LoadedSettings) -> Result<u64, Failure> {
    let (threads, listeners) = (threads(&loaded.settings), listeners(loaded)?.len());
    Ok(ConnectionLimits::of_this_process(loaded, threads, listeners)?.clients)
}

/// Adds what the admin endpoint reports about the store and the exporter of OpenTelemetry.
///
/// If the cache server has no TLS, the store exports when its own certificates expire. Otherwise
/// both have the same ones, and the cache server exports that.
fn add_reports(server: &mut Server, stored: Option<&StoreServer>, logs: &Logs, has_tls: bool) {
    let certificates = stored.filter(|_| !has_tls).map(StoreServer::certificate_exposition);
    server.extra_metrics.extend(certificates);
    server.extra_metrics.extend(extra_metrics(stored, logs));
    server.live_reports.extend(stored.map(StoreServer::live_tables));
}

/// Returns the options of the cache server, except threads.
fn options(
    loaded: &LoadedSettings,
    listeners: Vec<Listener>,
    tls: Option<Tls>,
) -> Result<Options, Failure> {
    let settings = &loaded.settings;
    let admin = settings.admin.iter().map(|listen_address| listen_address.address.clone());
    let options = Options::new(listeners).admin(admin.collect());
    let mut options = options.io_backend(reactors(settings));
    options.admin_optional = !loaded.is_set("admin");
    options.admin_access = Access::new(access::admin_rules(loaded)?);
    options.tls = tls;
    Ok(options)
}

fn reactors(settings: &Settings) -> IoBackend {
    match settings.event_loop {
        "io_uring" => IoBackend::Uring,
        "epoll" => IoBackend::Epoll,
        _ => IoBackend::Auto,
    }
}

fn threads(settings: &Settings) -> usize {
    let cores = || available_parallelism().map_or(1, usize::from);
    settings.threads.map_or_else(cores, |threads| threads as usize)
}

/// Returns the metrics of the store and of the exporter of OpenTelemetry, if there are such.
fn extra_metrics(stored: Option<&StoreServer>, logs: &Logs) -> impl Iterator<Item = Exposition> {
    let exporter = logs.exporter_metrics().map(Exposition::new);
    stored.map(StoreServer::exposition).into_iter().chain(exporter)
}

/// Logs the start, exports the metrics, and reports to the watchdog of the service manager while
/// the worker threads respond.
fn watch(running: &Running, logs: &Logs) {
    logs::server_started();
    logs.export_metrics(running.metrics());
    let mut heartbeat = running.heartbeat();
    start_watchdog(move || heartbeat.check());
}

fn greet(
    running: &Running,
    stored: Option<&StoreServer>,
    memory: u64,
    threads: usize,
) -> Result<(), Failure> {
    let mut text = String::new();
    for listener in running.listeners() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "listening at {listener}");
    }
    for address in stored.into_iter().flat_map(StoreServer::addresses) {
        let _ = writeln!(text, "listening at {address} for clients of the store");
    }
    text.push_str(&metrics_at(running.admin()));
    let s = if threads == 1 { "" } else { "s" };
    let (memory, reactor) = (bytes(memory), running.io_backend());
    let _ = writeln!(text, "{memory} of memory, {threads} thread{s} on {reactor}");
    let mut stdout = Stdout::new();
    stdout.write(text.as_bytes())?;
    stdout.flush()
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn failure(error: std::io::Error) -> Failure {
    Failure::Error(error.to_string())
}
