//! Who may connect, and from where: users, and the addresses that are refused without them.

use crate::arguments::EXPOSED_ADMIN;
use crate::files::{open_to_all, read_text};
use crate::outcome::Failure;
use crate::settings::{Configuration, Loaded, Place};
use nuthatch_server::state::Users;
use nuthatch_server::{Tls, TlsFiles};
use std::path::{Path, PathBuf};

/// What makes an address be taken all the same.
const ALLOWS: &str = "; --insecure allows it";

/// Bytes that a file of users may have.
const LONGEST: u64 = 16 << 20;

/// Bytes that a password may have.
const PASSWORD_LONGEST: u64 = 64 << 10;

/// Refuses more than one of the settings that say who can log in.
pub(crate) fn check_logins(loaded: &Loaded) -> Result<(), Failure> {
    let given = ["password", "password-file", "users"].into_iter();
    let given: Vec<_> = given.filter(|name| loaded.is_given(name)).collect();
    let [one, other, ..] = given.as_slice() else { return Ok(()) };
    let (one, other) = (loaded.source(one).named(), loaded.source(other).named());
    let expected = "expected one of password, password-file and users";
    Err(Failure::Usage(format!("{expected}, found {one} and {other}")))
}

/// Returns whether clients must log in; `None` if a file of users says so.
pub(crate) fn must_log_in(loaded: &Loaded) -> Option<bool> {
    let Configuration { password, password_file, users, .. } = &loaded.configuration;
    users.is_none().then(|| password.is_some() || password_file.is_some())
}

/// Returns the users: those of a file, or the default user with its password, or without.
pub(crate) fn users(loaded: &Loaded) -> Result<Users, Failure> {
    let Configuration { password, password_file, users, .. } = &loaded.configuration;
    if let Some(path) = users {
        let name = path.display().to_string();
        let text = read_text(&name, LONGEST)?;
        return Users::parse(&text).map_err(|error| Failure::Error(format!("{name}: {error}")));
    }
    let mut users = Users::default();
    if let Some(path) = password_file {
        users.require_password(read_password(path)?.as_bytes());
    } else if let Some(password) = password {
        users.require_password(password.0.as_bytes());
    }
    Ok(users)
}

/// The only line of a file.
fn read_password(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let text = read_text(&name, PASSWORD_LONGEST)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let found = match line {
        "" => "nothing",
        line if line.contains('\n') => "several lines",
        line => return Ok(line.to_owned()),
    };
    Err(Failure::Error(format!("{name}: expected one line with a password, found {found}")))
}

/// Returns the files of TLS; `None` if no address uses TLS.
///
/// # Errors
///
/// Fails if an address uses TLS and the certificate or the key is not set.
pub(crate) fn tls_files(loaded: &Loaded) -> Result<Option<TlsFiles>, Failure> {
    let Configuration { tls_cert, tls_key, tls_client_ca, .. } = &loaded.configuration;
    let Some((name, place)) = places(&loaded.configuration).find(|(_, place)| place.tls) else {
        return Ok(None);
    };
    let (Some(cert), Some(key)) = (tls_cert, tls_key) else {
        let absent = if tls_cert.is_none() { "tls-cert" } else { "tls-key" };
        let at = loaded.source(name).named();
        return Err(Failure::Usage(format!("{at} {place}: expected {absent} too, found none")));
    };
    let (cert, key) = (cert.clone(), key.clone());
    Ok(Some(TlsFiles { cert, key, client_ca: tls_client_ca.clone() }))
}

/// Opens the files of TLS; `None` if no address uses TLS.
pub(crate) fn tls(loaded: &Loaded) -> Result<Option<Tls>, Failure> {
    let tls = tls_files(loaded)?.map(|files| Tls::open(&files)).transpose();
    tls.map_err(|error| Failure::Error(error.to_string()))
}

/// All addresses, each with the name of its setting.
fn places(configuration: &Configuration) -> impl Iterator<Item = (&'static str, &Place)> {
    let Configuration { resp, memcache, pmc, mrcache, admin, .. } = configuration;
    let clients = [("resp", resp), ("memcache", memcache), ("pmc", pmc), ("mrcache", mrcache)];
    clients
        .into_iter()
        .chain([("admin", admin)])
        .flat_map(|(name, places)| places.iter().map(move |place| (name, place)))
}

/// Whether others than this machine can reach an address, without showing a certificate.
fn is_exposed(configuration: &Configuration, place: &Place) -> bool {
    let asks_for_certificate = place.tls && configuration.tls_client_ca.is_some();
    !place.address.is_local() && !asks_for_certificate
}

/// Refuses addresses that other machines can reach without a login, and those that bypass the
/// login. `must_log_in` is `None` if it is not known yet: then nothing that depends on it is
/// refused. Returns whether the default user must keep a password.
pub(crate) fn check_exposure(loaded: &Loaded, must_log_in: Option<bool>) -> Result<bool, Failure> {
    let configuration = &loaded.configuration;
    for (name, place) in places(configuration) {
        let exposed = is_exposed(configuration, place) && !configuration.insecure;
        let (problem, advice) = match name {
            "admin" if place.tls => ("the admin port has no TLS", ""),
            "admin" if exposed => (EXPOSED_ADMIN, ALLOWS),
            "mrcache" if must_log_in == Some(true) => (
                "mrcache has no login, so every client would be refused while a password or users \
                 are set; remove mrcache, or the password and users",
                "",
            ),
            "admin" => continue,
            _ if exposed && must_log_in == Some(false) => (
                "this address is reachable by other machines and needs no login; expected a \
                 password, a users file with `user default off`, or `tls:` with tls-client-ca",
                ALLOWS,
            ),
            _ => continue,
        };
        let at = loaded.source(name).named();
        return Err(Failure::Usage(format!("{at} {place}: {problem}{advice}")));
    }
    let clients = places(configuration).filter(|(name, _)| *name != "admin");
    let exposed = clients.filter(|(_, place)| is_exposed(configuration, place)).count() > 0;
    Ok(exposed && !configuration.insecure)
}

/// What whoever starts the server should know.
pub(crate) fn warnings(loaded: &Loaded) -> Vec<String> {
    let configuration = &loaded.configuration;
    let Configuration { password_file, users, tls_key, .. } = configuration;
    let mut secret: Vec<_> =
        [password_file, users, tls_key].into_iter().flatten().map(PathBuf::as_path).collect();
    let file = loaded.file.as_deref().filter(|_| loaded.is_from_file("password"));
    secret.extend(file.map(Path::new));
    let mut warnings: Vec<_> = secret.into_iter().filter_map(open_to_all).collect();
    let mut all = places(configuration).map(|(_, place)| place).chain(&configuration.grpc);
    if configuration.tls_cert.is_some() && !all.any(|place| place.tls) {
        let at = loaded.source("tls-cert").named();
        warnings.push(format!("{at} is not used: no address begins with `tls:`"));
    }
    warnings
}
