//! How a node of a cluster connects to the others: as a client of theirs.

use super::access;
use crate::files::read_secret;
use crate::outcome::Failure;
use crate::settings::{LoadedSettings, Settings};
use nuthatch_listen::Address;
use nuthatch_listen::tls::{client_config, roots, system_roots};
use nuthatch_server::{Cluster, NodeAccess};
use rustls::ClientConfig;
use std::sync::Arc;

const NAMES: [&str; 3] = ["node-ca", "node-user", "node-password-file"];

/// Checks the settings of connections to other nodes.
pub(super) fn check(loaded: &LoadedSettings) -> Result<(), Failure> {
    let [ca, user, password_file] = NAMES;
    if loaded.is_set(ca) && !has_tls(&loaded.settings) {
        let problem = "expected `tls:` in --resp, which certificates are for, found none";
        return Err(loaded.invalid(ca, problem));
    }
    match (loaded.is_set(user), loaded.is_set(password_file)) {
        (true, false) => Err(loaded.invalid(user, "expected node-password-file too, found none")),
        (false, true) => Err(loaded.invalid(password_file, "expected node-user too, found none")),
        _ => Ok(()),
    }
}

/// Returns how this node connects to the others. Reads the files that the settings name.
pub(super) fn node_access(loaded: &LoadedSettings) -> Result<NodeAccess, Failure> {
    let (user, password) = login(loaded)?;
    let has_tls = has_tls(&loaded.settings);
    let tls = has_tls.then(|| tls(&loaded.settings)).transpose()?;
    let bytes_per_s = loaded.settings.cluster_move_rate;
    Ok(NodeAccess { user, password, tls, bytes_per_s })
}

/// A change of how a node connects to the others, which was read and checked.
pub(super) struct NodeReload(NodeAccess);

impl NodeReload {
    /// Reads the files again.
    pub(super) fn read(loaded: &LoadedSettings) -> Result<Self, Failure> {
        node_access(loaded).map(Self)
    }

    /// Uses the new files for new connections.
    pub(super) fn apply(self, cluster: &Cluster) {
        cluster.set_access(self.0);
    }
}

/// Returns the user and the password: those for nodes, or the password that clients need.
fn login(loaded: &LoadedSettings) -> Result<(Option<String>, Option<String>), Failure> {
    let Settings { password, password_file, node_user, node_password_file, .. } = &loaded.settings;
    if let Some(path) = node_password_file {
        let password = read_secret(path, "the password of node-user")?;
        return Ok((Some(node_user.clone()), Some(password)));
    }
    if let Some(path) = password_file {
        return Ok((None, Some(read_secret(path, "a password")?)));
    }
    if password.is_none() && access::users(loaded)?.must_log_in() {
        let problem = "expected node-user and node-password-file with --cluster, found none: nodes \
                       log in to each other";
        return Err(loaded.invalid("users", problem));
    }
    Ok((None, password.as_ref().map(|password| password.0.clone())))
}

/// Returns whether other nodes reach this one with TLS. All nodes have the same settings.
fn has_tls(settings: &Settings) -> bool {
    let first = settings.resp.iter().find(|one| matches!(one.address, Address::Tcp(_)));
    first.is_some_and(|one| one.tls)
}

fn tls(settings: &Settings) -> Result<Arc<ClientConfig>, Failure> {
    let Settings { tls_cert, tls_key, tls_client_ca, node_ca, .. } = settings;
    let identity = tls_cert.as_deref().zip(tls_key.as_deref());
    let identity = identity.filter(|_| tls_client_ca.is_some());
    let config = match node_ca {
        Some(path) => roots(path),
        None => system_roots("--node-ca"),
    };
    let config = config.and_then(|roots| client_config(roots, identity));
    config.map_err(|error| Failure::Error(error.to_string()))
}
