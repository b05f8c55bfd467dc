//! Reload of files and settings on SIGHUP.

use super::config_command::changeable_settings;
use super::connection_limits::max_clients;
use super::{access, check, store_server};
use crate::logs::{LogFilter, warn};
use crate::outcome::Failure;
use crate::settings::{Environment, LoadedSettings, Setting, Settings, all_settings};
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

/// The running servers and the settings that they have.
pub(crate) struct ReloadState {
    /// The current settings.
    pub(crate) loaded: LoadedSettings,
    pub(crate) server: Reloader,
    pub(crate) log: LogFilter,
    /// Maximum number of clients that the limit of open files allows.
    pub(crate) clients_limit: u64,
    /// Reloads the server of the store, if there is one.
    pub(crate) store: Option<StoreReloader>,
}

impl ReloadState {
    /// Reads and checks all settings and files, those of the store included, and then applies all
    /// of them; on an error nothing is applied. `load` reads the settings.
    pub(crate) fn reload(
        &mut self,
        load: impl FnOnce(Environment) -> Result<LoadedSettings, Failure>,
    ) -> Result<(), Failure> {
        let mut loaded = self.loaded.clone();
        // Settings from standard input cannot be read again.
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
        loaded.settings.max_clients = clients;
        let mut reload = Reload::default();
        (reload.tls, reload.users) = (tls, Some(users));
        reload.settings = changeable_settings(&loaded);
        let store =
            self.store.as_ref().map(|store| StoreReload::read(store, &loaded)).transpose()?;
        self.server.reload(reload).map_err(Failure::Error)?;
        self.log.set(&loaded.settings.log);
        self.loaded = loaded;
        store.map_or(Ok(()), StoreReload::apply)
    }
}

/// A reload of the store server that was read and checked, and is not applied yet.
struct StoreReload<'r> {
    server: &'r StoreReloader,
    tls: Option<ServerTls>,
    tokens: Option<Tokens>,
}

impl<'r> StoreReload<'r> {
    fn read(server: &'r StoreReloader, loaded: &LoadedSettings) -> Result<Self, Failure> {
        let (tls, tokens) = store_server::credentials(&loaded.settings).read()?;
        server.check(tls.as_ref(), tokens.as_ref()).map_err(refused)?;
        Ok(Self { server, tls, tokens })
    }

    /// Applies the reload. It cannot fail after the check, since nothing else changes whether TLS
    /// and tokens are in use.
    fn apply(self) -> Result<(), Failure> {
        self.server.reload(self.tls, self.tokens).map(drop).map_err(refused)
    }
}

fn refused(error: ReloadError) -> Failure {
    Failure::Error(format!("the store: {error}"))
}

/// Restores the values of settings that cannot change while the server runs. Warns of each whose
/// new value needs a restart.
fn keep_fixed_settings(old: &LoadedSettings, new: &mut LoadedSettings) {
    // The default budget may have been lowered to fit the machine, without a change of the
    // settings.
    let is_default_memory = !new.is_set("memory");
    let (old, new) = (&old.settings, &mut new.settings);
    for setting in all_settings().filter(|setting| !is_reloaded(setting)) {
        let [mut before, mut after] = [old.clone(), new.clone()];
        let is_lowered = setting.name == "memory" && is_default_memory;
        if !is_lowered
            && setting.value_type.shown_value(&mut before)
                != setting.value_type.shown_value(&mut after)
        {
            let name = setting.name;
            warn(format_args!("{name} was changed: it needs a restart to take effect"));
        }
    }
    let fixed = old.clone();
    *new = Settings {
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
