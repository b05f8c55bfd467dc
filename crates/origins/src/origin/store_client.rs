//! Clients of object stores for callers that write, too.

use super::store::{Limits, causes, client, connection_failure};
use crate::address::{Address, HttpPlace, Place};
use crate::error::{Error, Result};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time of a response, which has at most some MiB.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time in which a request is repeated.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// The client of an object store, and a path in it.
#[derive(Clone)]
pub struct StoreClient {
    /// The client.
    pub store: Arc<dyn ObjectStore>,
    /// The path of the address.
    pub path: Path,
    /// The address without secrets.
    pub address: String,
    /// Whether objects can only be read, as on an HTTP server.
    pub is_read_only: bool,
}

/// Returns the client for an address such as `s3://bucket/path`, `gs://bucket/path`,
/// `az://container/path`, or `https://host/path` for reading. Credentials come from the environment, as for the store's own tools.
/// Requests that fail for a passing reason are repeated for up to 30 seconds.
///
/// # Errors
///
/// Fails with [`Error::Address`] if the address is not one of an object store, and with
/// [`Error::Setup`] if a setting in the environment is missing or invalid.
pub fn store_client(address: &str) -> Result<StoreClient> {
    let Address { place, plain } = Address::parse(address)?;
    let expected = "s3://bucket/path, gs://bucket/path, az://container/path or https://host/path";
    let unexpected = || Error::Address { address: plain.clone(), expected };
    let place = match place {
        Place::Store(place) => place,
        Place::Http(place) => return http_client(&place, plain),
        Place::File(_) => return Err(unexpected()),
    };
    let name = place.name.trim_end_matches('/');
    let path = Path::parse(name).ok().filter(|path| path.as_ref() == name);
    let path = path.ok_or_else(unexpected)?;
    let limits = Limits { retry: retry(), connect: CONNECT_TIMEOUT, response: RESPONSE_TIMEOUT };
    let store = client(&place, limits)?;
    let address = plain.trim_end_matches('/').to_owned();
    Ok(StoreClient { store, path, address, is_read_only: false })
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: 4, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() }
}

/// Returns the client for objects below the address of an HTTP server.
fn http_client(place: &HttpPlace, plain: String) -> Result<StoreClient> {
    if place.user.is_some() || place.url.query().is_some() {
        let expected = "an address without a user and a query";
        return Err(Error::Address { address: plain, expected });
    }
    let options = ClientOptions::new()
        .with_timeout(RESPONSE_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_allow_http(place.url.scheme() == "http");
    let address = plain.trim_end_matches('/').to_owned();
    let store = HttpBuilder::new()
        .with_url(address.clone())
        .with_client_options(options)
        .with_retry(retry())
        .build();
    let reason = || format!("{address}: its client cannot be created");
    let store = store.map_err(|_| Error::Setup { what: "a store", reason: reason() })?;
    Ok(StoreClient { store: Arc::new(store), path: Path::default(), address, is_read_only: true })
}

/// Returns the reason of a failed request, without the response of the store, which can contain
/// keys and signatures.
pub fn store_failure(error: &object_store::Error) -> String {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => "it does not exist".to_owned(),
        E::AlreadyExists { .. } => "it exists already".to_owned(),
        E::Precondition { .. } => "it was replaced meanwhile".to_owned(),
        E::PermissionDenied { .. } => "the credentials do not permit it (status 403)".to_owned(),
        E::Unauthenticated { .. } => "the credentials are not valid (status 401)".to_owned(),
        E::NotImplemented { .. } | E::NotSupported { .. } => {
            "the store or server does not support it; HTTP servers must support ranges".to_owned()
        }
        other => connection_failure(other)
            .or_else(|| status(other))
            .or_else(|| local(other))
            .unwrap_or_else(|| "an unexpected response, or no usable credentials".to_owned()),
    }
}

/// Returns the status, which the library has only in its text.
fn status(error: &object_store::Error) -> Option<String> {
    let text = error.to_string();
    let (_, rest) = text.split_once("status code: ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    match digits.as_str() {
        "" => None,
        "404" => Some("it does not exist (status 404)".to_owned()),
        digits => Some(format!("the store answered with status {digits}")),
    }
}

/// Returns the error of the system, or another cause, for files.
fn local(error: &object_store::Error) -> Option<String> {
    if let Some(found) = causes(error).find_map(|cause| cause.downcast_ref::<std::io::Error>()) {
        return Some(found.to_string());
    }
    let is_local =
        matches!(error, object_store::Error::Generic { store, .. } if *store == "LocalFileSystem");
    is_local.then(|| causes(error).last().map(ToString::to_string)).flatten()
}
