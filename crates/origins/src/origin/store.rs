//! Stores with protocols of their own, through the crate `object_store`: S3, Google, Azure.

use super::http::innermost;
use super::last_status::{LastStatus, StatusConnector};
use super::metadata::{Head, OpenedVersion, RangeResponse, Stamp};
use super::response::refused_by_number;
use crate::address::{StoreKind, StorePlace};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::retry::Fault;
use crate::settings::Settings;
use crate::status::stale_if_error;
use bytes::Bytes;
use futures_core::Stream;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{
    Attribute, ClientConfigKey, Extensions, GetOptions, GetResult, ObjectStore, RetryConfig,
};
use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

/// The clients of stores, by scheme and bucket. Each client keeps its credentials until they
/// expire.
pub(crate) struct Stores {
    open: Mutex<HashMap<String, Known>>,
    connect_timeout: Duration,
}

#[derive(Clone)]
struct Known {
    store: Arc<dyn ObjectStore>,
    /// The beginning of addresses, in place of scheme and bucket: see [`located`].
    prefix: String,
}

/// An object of a store.
pub(crate) struct StoreOrigin {
    store: Arc<dyn ObjectStore>,
    path: Path,
    address: String,
}

impl fmt::Debug for StoreOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOrigin").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Stores {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { open: Mutex::default(), connect_timeout: settings.connect_timeout }
    }

    /// Returns the origin of an object, and its address. If the endpoint is not the default one of
    /// its kind of store, the address contains it.
    pub(super) fn origin(&self, place: &StorePlace, plain: &str) -> Result<(StoreOrigin, String)> {
        let unexpected = |expected| Error::Address { address: plain.to_owned(), expected };
        // The library trims names: another one would be read.
        let path = Path::parse(&place.name).ok().filter(|path| path.as_ref() == place.name);
        let path = path.ok_or_else(|| unexpected("a name without empty parts, `.` and `..`"))?;
        let mut open = lock(&self.open);
        let known = if let Some(known) = open.get(&place.bucket) {
            known.clone()
        } else {
            let known = self.build(place)?;
            open.insert(place.bucket.clone(), known.clone());
            known
        };
        let address = format!("{}/{}", known.prefix, place.name);
        Ok((StoreOrigin { store: known.store, path, address: address.clone() }, address))
    }

    /// Creates the client of a store. Failed requests are retried by the callers.
    fn build(&self, place: &StorePlace) -> Result<Known> {
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        // The read timeout limits the wait for data; a whole response may take any time.
        let limits = Limits { retry, connect: self.connect_timeout, response: DAY };
        Ok(Known { store: client(place, limits)?, prefix: located(place) })
    }
}

/// The retries and the timeouts of the client of a store.
pub(super) struct Limits {
    pub(super) retry: RetryConfig,
    pub(super) connect: Duration,
    /// The maximum time of a whole response.
    pub(super) response: Duration,
}

/// Creates the client of a store. Credentials come from the places where the store's own tools look
/// for them, such as environment variables.
pub(super) fn client(place: &StorePlace, limits: Limits) -> Result<Arc<dyn ObjectStore>> {
    let bucket = place.bucket.as_str();
    let retry = limits.retry;
    let millis = |time: Duration| format!("{} ms", time.as_millis());
    let timeouts = [
        (ClientConfigKey::Timeout, millis(limits.response)),
        (ClientConfigKey::ConnectTimeout, millis(limits.connect)),
    ];
    let built: object_store::Result<Arc<dyn ObjectStore>> = match place.kind {
        StoreKind::S3 => {
            let mut builder = AmazonS3Builder::from_env().with_url(bucket);
            let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
            if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
                builder = builder.with_allow_http(true);
            }
            for (key, value) in timeouts {
                builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
            }
            let builder = builder.with_retry(retry).with_http_connector(StatusConnector);
            builder.build().map(|store| Arc::new(store) as _)
        }
        StoreKind::Google => {
            let mut builder = GoogleCloudStorageBuilder::from_env().with_url(bucket);
            for (key, value) in timeouts {
                builder = builder.with_config(GoogleConfigKey::Client(key), value);
            }
            let builder = builder.with_retry(retry).with_http_connector(StatusConnector);
            builder.build().map(|store| Arc::new(store) as _)
        }
        StoreKind::Azure => {
            let mut builder = MicrosoftAzureBuilder::from_env().with_url(bucket);
            for (key, value) in timeouts {
                builder = builder.with_config(AzureConfigKey::Client(key), value);
            }
            let builder = builder.with_retry(retry).with_http_connector(StatusConnector);
            builder.build().map(|store| Arc::new(store) as _)
        }
    };
    // The error of the library may contain a credential.
    let reason = || format!("{bucket}: its settings in the environment are missing or invalid");
    built.map_err(|_| Error::Setup { what: "a store", reason: reason() })
}

/// Returns the beginning of the addresses in a store. It contains the endpoint if the environment
/// determines it, since scheme and bucket do not identify the store then.
pub(super) fn located(place: &StorePlace) -> String {
    let bucket = place.bucket.as_str();
    let at = |endpoint: Option<String>| {
        endpoint.map_or_else(|| bucket.to_owned(), |endpoint| at_endpoint(&endpoint, bucket))
    };
    match place.kind {
        StoreKind::S3 => {
            at(AmazonS3Builder::from_env().get_config_value(&AmazonS3ConfigKey::Endpoint))
        }
        StoreKind::Google => {
            at(GoogleCloudStorageBuilder::from_env().get_config_value(&GoogleConfigKey::BaseUrl))
        }
        StoreKind::Azure => {
            let builder = MicrosoftAzureBuilder::from_env();
            let account = builder.get_config_value(&AzureConfigKey::AccountName);
            let located = at(builder.get_config_value(&AzureConfigKey::Endpoint));
            match account.filter(|_| !bucket.contains('@')) {
                Some(account) => format!("{located}@{account}"),
                None => located,
            }
        }
    }
}

/// Returns the beginning of the addresses in a store with this endpoint.
fn at_endpoint(endpoint: &str, bucket: &str) -> String {
    let (scheme, rest) = bucket.split_once("://").unwrap_or(("s3", bucket));
    let Ok(url) = url::Url::parse(endpoint) else { return bucket.to_owned() };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    format!("{scheme}+{}://{host}{port}{path}/{rest}", url.scheme())
}

impl StoreOrigin {
    pub(super) async fn head(&self) -> Result<Head, Fault> {
        let last_status = LastStatus::default();
        let options =
            GetOptions { head: true, extensions: with(&last_status), ..GetOptions::default() };
        let response = self.store.get_opts(&self.path, options).await;
        let response = response.map_err(|error| self.fault(&error, &last_status, None))?;
        let stamp = stamp_of(&response);
        let version = response.meta.version.clone().map(|version| format!("version {version}"));
        let content_type = response.attributes.get(&Attribute::ContentType);
        let cache_control = response.attributes.get(&Attribute::CacheControl);
        Ok(Head {
            len: Some(response.meta.size),
            validator: stamp.strong_tag().map(str::to_owned).or(version),
            stamp,
            modified: Some(response.meta.last_modified.into()),
            content_type: content_type.map(|value| value.as_ref().to_owned()),
            ranges: true,
            stale_if_error: cache_control.and_then(|value| stale_if_error(value.as_ref())),
        })
    }

    pub(super) async fn get(
        &self,
        range: Range<u64>,
        opened: &OpenedVersion,
    ) -> Result<RangeResponse<StoreBody>, Fault> {
        let last_status = LastStatus::default();
        let options = GetOptions {
            if_match: opened.stamp.strong_tag().map(str::to_owned),
            range: Some(range.clone().into()),
            extensions: with(&last_status),
            ..GetOptions::default()
        };
        let response = self.store.get_opts(&self.path, options).await;
        let response = response.map_err(|error| self.fault(&error, &last_status, Some(opened)))?;
        opened.check(&stamp_of(&response), Some(response.meta.size))?;
        let found = response.range.clone();
        if found.start != range.start || found.end > range.end {
            return Err(opened.unexpected(format!("bytes {range:?}"), format!("{found:?}")).into());
        }
        Ok(RangeResponse { range: found, body: StoreBody(response.into_stream()) })
    }

    /// Converts an error of the library. Its text is dropped: it contains the response of the
    /// server, which can contain keys and signatures.
    fn fault(
        &self,
        error: &object_store::Error,
        last_status: &LastStatus,
        opened: Option<&OpenedVersion>,
    ) -> Fault {
        match (last_status.get(), opened) {
            (Some((412, _)), Some(opened)) => opened.changed("another version").into(),
            (Some((status, after)), _) if status >= 300 => {
                refused_by_number(status, after, &self.address)
            }
            (Some((status, _)), _) => {
                let (address, expected) = (self.address.clone(), "a length and a validator".into());
                let found = format!("status {status} without them, or for another range");
                Error::Response { address, expected, found }.into()
            }
            (None, _) => match transport(error) {
                Some(fault) => fault,
                // No request was sent, so the credentials could not be obtained.
                None => Fault::Permanent(Error::Denied {
                    address: self.address.clone(),
                    reason: "no usable credentials".into(),
                }),
            },
        }
    }
}

fn with(last_status: &LastStatus) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(last_status.clone());
    extensions
}

fn stamp_of(response: &GetResult) -> Stamp {
    Stamp {
        etag: response.meta.e_tag.clone(),
        modified: Some(response.meta.last_modified.to_rfc2822()),
    }
}

/// Returns the fault of the connection, if the error is one.
fn transport(error: &object_store::Error) -> Option<Fault> {
    connection_failure(error).map(Fault::broken)
}

/// Returns how the connection failed, if that is the error.
pub(super) fn connection_failure(error: &object_store::Error) -> Option<String> {
    let http = causes(error).find_map(|cause| cause.downcast_ref::<HttpError>())?;
    let what = match http.kind() {
        HttpErrorKind::Connect => "cannot connect",
        HttpErrorKind::Timeout => "timed out",
        _ => "the connection was lost",
    };
    Some(format!("{what}: {}", innermost(http)))
}

/// Returns an error and its causes.
pub(super) fn causes<'e>(
    error: &'e object_store::Error,
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
}

/// The body of a response.
pub(crate) struct StoreBody(
    Pin<Box<dyn Stream<Item = object_store::Result<Bytes>> + Send + 'static>>,
);

impl StoreBody {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        match poll_fn(|context| self.0.as_mut().poll_next(context)).await {
            Some(Ok(bytes)) => Ok(Some(bytes)),
            Some(Err(error)) => {
                let otherwise = || Fault::broken("the response ended early");
                Err(transport(&error).unwrap_or_else(otherwise))
            }
            None => Ok(None),
        }
    }
}
