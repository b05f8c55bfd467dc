//! Reload of files and settings on SIGHUP.

use super::config_command::changeable_settings;
use super::connection_limits::max_clients;
use super::etcd::EtcdReloader;
use super::node_access::NodeReload;
use super::{access, check, cluster, store_server};
use crate::logs::{LogFilter, warn};
use crate::outcome::Failure;
use crate::settings::{Environment, LoadedSettings, Settings, all_settings};
use nuthatch_listen::admin::Access;
use nuthatch_rpc::{ReloadError, Reloader as StoreReloader, ServerTls, Tokens};
use nuthatch_server::{Cluster, Reload, Reloader};
use std::sync::Arc;

/// The running servers and the settings that they have.
pub(crate) struct ReloadState {
    /// The current settings.
    pub(crate) loaded: LoadedSettings,
    pub(crate) server: Reloader,
    /// The rules of the admin endpoint.
    pub(crate) admin: Access,
    pub(crate) log: LogFilter,
    /// Maximum number of clients that the limit of open files allows.
    pub(crate) clients_limit: u64,
    /// Reloads the server of the store, if there is one.
    pub(crate) store: Option<StoreReloader>,
    /// Reloads the connection to etcd, if the server is a node of a cluster.
    pub(crate) etcd: Option<EtcdReloader>,
    /// The cluster, for the login and the certificates of connections to other nodes.
    pub(crate) cluster: Option<Arc<Cluster>>,
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
        let admin = access::admin_rules(&loaded)?;
        let etcd = match (&self.etcd, cluster::etcd_options(&loaded)?) {
            (Some(reloader), Some(options)) => Some((reloader, reloader.prepare(&options)?)),
            _ => None,
        };
        let node = self.cluster.as_ref().map(|_| NodeReload::read(&loaded)).transpose()?;
        let clients = max_clients(&loaded, self.clients_limit);
        loaded.settings.max_clients = clients;
        let mut reload = Reload::default();
        (reload.tls, reload.users) = (tls, Some(users));
        reload.settings = changeable_settings(&loaded);
        let store =
            self.store.as_ref().map(|store| StoreReload::read(store, &loaded)).transpose()?;
        self.server.reload(reload).map_err(Failure::Error)?;
        if let Some((reloader, reload)) = etcd {
            reloader.apply(reload);
        }
        if let (Some(cluster), Some(reload)) = (&self.cluster, node) {
            reload.apply(cluster);
        }
        self.admin.replace(admin);
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
    for setting in all_settings().filter(|setting| !setting.is_reloaded()) {
        let is_lowered = setting.name == "memory" && is_default_memory;
        let shown_value = |of: &Settings| setting.value_type.shown_value(of);
        if !is_lowered && shown_value(old) != shown_value(new) {
            let name = setting.name;
            warn(format_args!("{name} was changed: it needs a restart to take effect"));
        }
        (setting.copy)(old, new);
    }
}
