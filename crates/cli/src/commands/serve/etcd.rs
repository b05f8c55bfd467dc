//! The connection of a node of a cluster to etcd: its settings, its reload, and its problems in the
//! log.

use crate::files::read_secret;
use crate::outcome::Failure;
use crate::settings::{ClusterAddress, LoadedSettings, Settings};
use nuthatch_cluster::etcd::{
    Etcd, EtcdError, EtcdOptions, EtcdProblem, EtcdReload, EtcdReport, EtcdTls,
};
use std::sync::Arc;
use tokio::runtime::Handle;
use tracing::{info, warn};

const LOG: &str = "nuthatch::cluster";

/// The settings of the connection.
const TLS_NAMES: [&str; 3] = ["etcd-ca", "etcd-cert", "etcd-key"];
const LOGIN_NAMES: [&str; 3] = ["etcd-user", "etcd-password", "etcd-password-file"];

/// Checks the settings of the connection to the etcd of a cluster.
pub(super) fn check(loaded: &LoadedSettings, address: &ClusterAddress) -> Result<(), Failure> {
    let name_of_tls = TLS_NAMES.into_iter().find(|name| loaded.is_set(name));
    if let (false, Some(name)) = (address.has_tls, name_of_tls) {
        let problem = "expected etcds:// in --cluster, which certificates are for, found etcd://";
        return Err(loaded.invalid(name, problem));
    }
    let Settings { etcd_cert, etcd_key, etcd_user, .. } = &loaded.settings;
    match (etcd_cert, etcd_key) {
        (Some(_), None) => {
            return Err(loaded.invalid("etcd-cert", "expected etcd-key too, found none"));
        }
        (None, Some(_)) => {
            return Err(loaded.invalid("etcd-key", "expected etcd-cert too, found none"));
        }
        _ => {}
    }
    check_login(loaded)?;
    if etcd_user.is_empty() || address.has_tls || loaded.settings.insecure {
        return Ok(());
    }
    let Some(endpoint) = address.etcd.remote_endpoint() else { return Ok(()) };
    let problem = format!(
        "the password of etcd-user would be sent to {endpoint} unencrypted; expected etcds://, \
         found etcd://; --insecure allows it"
    );
    Err(loaded.invalid("cluster", problem))
}

/// Checks that there is a user with one password, or neither.
fn check_login(loaded: &LoadedSettings) -> Result<(), Failure> {
    let [_, password, password_file] = LOGIN_NAMES;
    let passwords: Vec<_> =
        [password, password_file].into_iter().filter(|name| loaded.is_set(name)).collect();
    match (loaded.settings.etcd_user.is_empty(), &passwords[..]) {
        (true, [name, ..]) => Err(loaded.invalid(name, "expected etcd-user too, found none")),
        (false, []) => {
            let problem = "expected etcd-password-file or etcd-password too, found none";
            Err(loaded.invalid("etcd-user", problem))
        }
        (_, [one, other, ..]) => {
            let (one, other) = (loaded.source(one).named(), loaded.source(other).named());
            let expected = "expected one of etcd-password and etcd-password-file";
            Err(Failure::Usage(format!("{expected}, found {one} and {other}")))
        }
        _ => Ok(()),
    }
}

/// Returns the options of the connection. Reads the files that the settings name.
pub(super) fn options(
    loaded: &LoadedSettings,
    address: &ClusterAddress,
) -> Result<EtcdOptions, Failure> {
    let Settings { etcd_ca, etcd_cert, etcd_key, etcd_user, .. } = &loaded.settings;
    let Settings { etcd_password, etcd_password_file, .. } = &loaded.settings;
    let mut options = address.etcd.clone();
    if address.has_tls {
        let failed = |error: &dyn std::fmt::Display| Failure::Error(error.to_string());
        let tls = etcd_ca.as_deref().map_or_else(EtcdTls::system, EtcdTls::open);
        let mut tls = tls.map_err(|error| failed(&error))?;
        if let (Some(cert), Some(key)) = (etcd_cert, etcd_key) {
            tls = tls.identity(cert, key).map_err(|error| failed(&error))?;
        }
        options = options.tls(tls);
    }
    let password = match (etcd_password_file, etcd_password) {
        (Some(path), _) => Some(read_secret(path, "a password")?),
        (None, Some(password)) => Some(password.0.clone()),
        (None, None) => None,
    };
    Ok(match password {
        Some(password) if !etcd_user.is_empty() => options.credentials(etcd_user, &password),
        _ => options,
    })
}

/// Creates the client of etcd, which logs its problems. To be called within the runtime of its
/// requests.
pub(super) fn client(options: &EtcdOptions) -> Result<Etcd, EtcdError> {
    Etcd::with_reports(options, log)
}

/// Logs that etcd does not execute requests, or that it executes them again.
fn log(report: EtcdReport) {
    match report {
        EtcdReport::Began(EtcdProblem { kind, endpoint, request, found, advice }) => {
            let summary = kind.summary();
            warn!(target: LOG, endpoint, %request, found, "{summary}; {advice}");
        }
        EtcdReport::Ended(EtcdProblem { kind, endpoint, request, .. }) => {
            let problem = kind.summary();
            info!(target: LOG, endpoint, %request, problem, "a problem with etcd has ended");
        }
    }
}

/// Replaces the certificates and the login of the connection while the server runs.
#[derive(Clone)]
pub(super) struct EtcdReloader {
    etcd: Arc<Etcd>,
    runtime: Handle,
}

impl EtcdReloader {
    pub(super) fn new(etcd: Arc<Etcd>, runtime: Handle) -> Self {
        Self { etcd, runtime }
    }

    /// Checks options. Nothing changes before [`apply`](Self::apply).
    pub(super) fn prepare(&self, options: &EtcdOptions) -> Result<EtcdReload, Failure> {
        let _entered = self.runtime.enter();
        EtcdReload::new(options).map_err(|error| Failure::Error(format!("etcd: {error}")))
    }

    pub(super) fn apply(&self, reload: EtcdReload) {
        self.etcd.apply(reload);
    }
}
