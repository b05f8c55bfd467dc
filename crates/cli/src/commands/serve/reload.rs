//! SIGHUP: files and settings are read again while the server runs.

use super::config_command::changeable_settings;
use super::connection_limits::max_clients;
use super::{access, check, store_server};
use crate::logs::{LogFilter, warn};
use crate::outcome::Failure;
use crate::settings::{Configuration, Environment, Loaded, Setting, settings};
use nuthatch_rpc::{ReloadError, Reloader as StoreReloader, ServerTls, Tokens};
use nuthatch_server::{Reload, Reloader};

/// Settings that a reload applies; all others need a restart.
const RELOADED: &[&str] = &[
    "max-clients",
    "timeout",
    "tcp-keepalive",
    "client-output-hard-limit",
    "client-output-soft-limit",
    "client-output-soft-time",
    "max-value",
    "slow-log-threshold",
    "slow-log-length",
    "latency-tracking",
    "log",
    "password",
    "password-file",
    "users",
    "tls-cert",
    "tls-key",
    "tls-client-ca",
];

/// Returns whether a reload applies a setting.
pub(crate) fn is_reloaded(setting: &Setting) -> bool {
    RELOADED.contains(&setting.name)
}

/// What is reloaded, and from where.
pub(crate) struct Reloading {
    /// What the server was told until now.
    pub(crate) loaded: Loaded,
    pub(crate) server: Reloader,
    pub(crate) log: LogFilter,
    /// How many clients there can be.
    pub(crate) clients_limit: u64,
    /// Reloads the server of the store, if there is one.
    pub(crate) store: Option<StoreReloader>,
}

impl Reloading {
    /// Reads and checks all settings and files, those of the store included, and then applies all
    /// of them; on an error nothing is applied. `load` reads the settings.
    pub(crate) fn reload(
        &mut self,
        load: impl FnOnce(Environment) -> Result<Loaded, Failure>,
    ) -> Result<(), Failure> {
        let mut loaded = self.loaded.clone();
        // Standard input cannot be read again.
        if self.loaded.file.as_deref() != Some("-") {
            let environment = Environment::read(std::env::vars_os()).map_err(Failure::Usage)?;
            loaded = load(environment)?;
            keep_fixed_settings(&self.loaded, &mut loaded);
        }
        check::check(&loaded)?;
        let users = access::users(&loaded)?;
        access::check_exposure(&loaded, Some(users.must_log_in()))?;
        let tls = access::tls(&loaded)?;
        let clients = max_clients(&loaded, self.clients_limit);
        loaded.configuration.max_clients = clients;
        let mut reload = Reload::default();
        (reload.tls, reload.users) = (tls, Some(users));
        reload.settings = changeable_settings(&loaded);
        let store = self.store.as_ref().map(|store| Pending::read(store, &loaded)).transpose()?;
        self.server.reload(reload).map_err(Failure::Error)?;
        self.log.set(&loaded.configuration.log);
        self.loaded = loaded;
        store.map_or(Ok(()), Pending::apply)
    }
}

/// A reload of the server of the store that was read and checked, and not applied yet.
struct Pending<'r> {
    server: &'r StoreReloader,
    tls: Option<ServerTls>,
    tokens: Option<Tokens>,
}

impl<'r> Pending<'r> {
    fn read(server: &'r StoreReloader, loaded: &Loaded) -> Result<Self, Failure> {
        let (tls, tokens) = store_server::secrets(&loaded.configuration).read()?;
        server.check(tls.as_ref(), tokens.as_ref()).map_err(refused)?;
        Ok(Self { server, tls, tokens })
    }

    /// Cannot fail after the check: nothing else changes whether there is TLS, or tokens.
    fn apply(self) -> Result<(), Failure> {
        self.server.reload(self.tls, self.tokens).map(drop).map_err(refused)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn refused(error: ReloadError) -> Failure {
    Failure::Error(format!("the store: {error}"))
}

/// Gives the settings that cannot change while the server runs their old values, with a warning
/// for each that would be another one after a restart.
fn keep_fixed_settings(old: &Loaded, new: &mut Loaded) {
    // The default budget may have been lowered to what the machine has: no file has changed then.
    let is_default_memory = !new.is_given("memory");
    let (old, new) = (&old.configuration, &mut new.configuration);
    for setting in settings().filter(|setting| !is_reloaded(setting)) {
        let [mut before, mut after] = [old.clone(), new.clone()];
        let is_lowered = setting.name == "memory" && is_default_memory;
        if !is_lowered && setting.kind.shown(&mut before) != setting.kind.shown(&mut after) {
            let name = setting.name;
            warn(format_args!("{name} was changed: it needs a restart to take effect"));
        }
    }
    let fixed = old.clone();
    *new = Configuration {
        max_clients: new.max_clients,
        timeout: new.timeout,
        tcp_keepalive: new.tcp_keepalive,
        client_output_hard_limit: new.client_output_hard_limit,
        client_output_soft_limit: new.client_output_soft_limit,
        client_output_soft_time: new.client_output_soft_time,
        max_value: new.max_value,
        slow_log_threshold: new.slow_log_threshold,
        slow_log_length: new.slow_log_length,
        latency_tracking: new.latency_tracking,
        log: new.log.clone(),
        password: new.password.clone(),
        password_file: new.password_file.clone(),
        users: new.users.clone(),
        tls_cert: new.tls_cert.clone(),
        tls_key: new.tls_key.clone(),
        tls_client_ca: new.tls_client_ca.clone(),
        ..fixed
    };
}
