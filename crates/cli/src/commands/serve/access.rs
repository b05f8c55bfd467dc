//! Access control: users, TLS, and the check of addresses that other machines can reach.

use crate::arguments::{self, EXPOSED_ADMIN, check_host};
use crate::files::{read_secret, read_text, world_readable_warning};
use crate::outcome::Failure;
use crate::settings::{ListenAddress, LoadedSettings, Settings};
use nuthatch_listen::admin::AccessRules;
use nuthatch_server::state::Users;
use nuthatch_server::{Tls, TlsFiles};
use std::path::{Path, PathBuf};

/// The advice for addresses that are refused.
const INSECURE_ADVICE: &str = "; --insecure allows it";

/// What to do about an admin address that other machines can reach.
const ADMIN_ADVICE: &str = "; --admin-insecure allows it";

/// Maximum length of a file of users, in bytes.
const MAX_USERS_LEN: u64 = 16 << 20;

/// Fails if more than one of `password`, `password-file` and `users` is set.
pub(crate) fn check_logins(loaded: &LoadedSettings) -> Result<(), Failure> {
    let names = ["password", "password-file", "users"].into_iter();
    let names: Vec<_> = names.filter(|name| loaded.is_set(name)).collect();
    let [one, other, ..] = names.as_slice() else { return Ok(()) };
    let (one, other) = (loaded.source(one).named(), loaded.source(other).named());
    let expected = "expected one of password, password-file and users";
    Err(Failure::Usage(format!("{expected}, found {one} and {other}")))
}

/// Returns whether clients must log in. `None` if a file of users determines it.
pub(crate) fn must_log_in(loaded: &LoadedSettings) -> Option<bool> {
    let Settings { password, password_file, users, .. } = &loaded.settings;
    users.is_none().then(|| password.is_some() || password_file.is_some())
}

/// Returns the users: those of a file, or the default user with or without a password.
pub(crate) fn users(loaded: &LoadedSettings) -> Result<Users, Failure> {
    let Settings { password, password_file, users, .. } = &loaded.settings;
    if let Some(path) = users {
        let name = path.display().to_string();
        let text = read_text(&name, MAX_USERS_LEN)?;
        return Users::parse(&text).map_err(|error| Failure::Error(format!("{name}: {error}")));
    }
    let mut users = Users::default();
    if let Some(path) = password_file {
        users.require_password(read_secret(path, "a password")?.as_bytes());
    } else if let Some(password) = password {
        users.require_password(password.0.as_bytes());
    }
    Ok(users)
}

/// Returns the rules of the admin endpoint.
pub(crate) fn admin_rules(loaded: &LoadedSettings) -> Result<AccessRules, Failure> {
    let Settings { admin_host, admin_token_file, .. } = &loaded.settings;
    arguments::admin_rules(admin_host, admin_token_file.as_deref())
}

/// Fails if a name of the admin endpoint is none.
pub(crate) fn check_admin_hosts(loaded: &LoadedSettings) -> Result<(), Failure> {
    let hosts = &loaded.settings.admin_host;
    let problem = hosts.iter().find_map(|name| check_host(name).err());
    problem.map_or(Ok(()), |problem| Err(loaded.invalid("admin-host", problem)))
}

/// Returns the files of TLS; `None` if no address uses TLS.
///
/// # Errors
///
/// Fails if an address uses TLS and the certificate or the key is not set.
pub(crate) fn tls_files(loaded: &LoadedSettings) -> Result<Option<TlsFiles>, Failure> {
    let Settings { tls_cert, tls_key, tls_client_ca, .. } = &loaded.settings;
    let Some((name, listen_address)) =
        listen_addresses(&loaded.settings).find(|(_, listen_address)| listen_address.tls)
    else {
        return Ok(None);
    };
    let (Some(cert), Some(key)) = (tls_cert, tls_key) else {
        let absent = if tls_cert.is_none() { "tls-cert" } else { "tls-key" };
        let at = loaded.source(name).named();
        return Err(Failure::Usage(format!(
            "{at} {listen_address}: expected {absent} too, found none"
        )));
    };
    let (cert, key) = (cert.clone(), key.clone());
    Ok(Some(TlsFiles { cert, key, client_ca: tls_client_ca.clone() }))
}

/// Opens the files of TLS; `None` if no address uses TLS.
pub(crate) fn tls(loaded: &LoadedSettings) -> Result<Option<Tls>, Failure> {
    let tls = tls_files(loaded)?.map(|files| Tls::open(&files)).transpose();
    tls.map_err(|error| Failure::Error(error.to_string()))
}

/// Returns all addresses, each with the name of its setting.
fn listen_addresses(settings: &Settings) -> impl Iterator<Item = (&'static str, &ListenAddress)> {
    let Settings { resp, memcache, pmc, mrcache, admin, .. } = settings;
    let clients = [("resp", resp), ("memcache", memcache), ("pmc", pmc), ("mrcache", mrcache)];
    clients.into_iter().chain([("admin", admin)]).flat_map(|(name, listen_addresses)| {
        listen_addresses.iter().map(move |listen_address| (name, listen_address))
    })
}

/// Returns whether other machines can reach an address without a client certificate.
fn is_exposed(settings: &Settings, listen_address: &ListenAddress) -> bool {
    let requires_certificate = listen_address.tls && settings.tls_client_ca.is_some();
    !listen_address.address.is_local() && !requires_certificate
}

/// Refuses addresses that other machines can reach without a login, and those that bypass the
/// login. `must_log_in` is `None` if it is not known yet: then nothing that depends on it is
/// refused. Returns whether the default user must keep a password.
pub(crate) fn check_exposure(
    loaded: &LoadedSettings,
    must_log_in: Option<bool>,
) -> Result<bool, Failure> {
    let settings = &loaded.settings;
    for (name, listen_address) in listen_addresses(settings) {
        let exposed = is_exposed(settings, listen_address) && !settings.insecure;
        let (problem, advice) = match name {
            "admin" if listen_address.tls => ("the admin endpoint has no TLS", ""),
            "admin" if exposed && !settings.admin_insecure => (EXPOSED_ADMIN, ADMIN_ADVICE),
            "mrcache" if must_log_in == Some(true) => (
                "mrcache has no login, so every client would be refused while a password or users \
                 are set; remove mrcache, or the password and users",
                "",
            ),
            "admin" => continue,
            _ if exposed && must_log_in == Some(false) => (
                "this address is reachable by other machines and needs no login; expected a \
                 password, a users file with `user default off`, or `tls:` with tls-client-ca",
                INSECURE_ADVICE,
            ),
            _ => continue,
        };
        let at = loaded.source(name).named();
        return Err(Failure::Usage(format!("{at} {listen_address}: {problem}{advice}")));
    }
    let clients = listen_addresses(settings).filter(|(name, _)| *name != "admin");
    let exposed =
        clients.filter(|(_, listen_address)| is_exposed(settings, listen_address)).count() > 0;
    Ok(exposed && !settings.insecure)
}

/// Returns warnings about the settings.
pub(crate) fn warnings(loaded: &LoadedSettings) -> Vec<String> {
    let settings = &loaded.settings;
    let Settings { password_file, users, tls_key, admin_token_file, .. } = settings;
    let Settings { etcd_key, etcd_password_file, node_password_file, .. } = settings;
    let secret = [password_file, users, tls_key, admin_token_file];
    let of_cluster = [etcd_key, etcd_password_file, node_password_file];
    let secret = secret.into_iter().chain(of_cluster).flatten();
    let mut secret: Vec<_> = secret.map(PathBuf::as_path).collect();
    let has_password = ["password", "etcd-password"].iter().any(|name| loaded.is_from_file(name));
    let file = loaded.file.as_deref().filter(|_| has_password);
    secret.extend(file.map(Path::new));
    let mut warnings: Vec<_> = secret.into_iter().filter_map(world_readable_warning).collect();
    let mut all =
        listen_addresses(settings).map(|(_, listen_address)| listen_address).chain(&settings.grpc);
    if settings.tls_cert.is_some() && !all.any(|listen_address| listen_address.tls) {
        let at = loaded.source("tls-cert").named();
        warnings.push(format!("{at} is not used: no address begins with `tls:`"));
    }
    warnings
}
