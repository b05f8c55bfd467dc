//! Parses addresses of objects, and removes secrets from them.

use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use url::Url;

/// The location of an object.
#[derive(Clone)]
pub(crate) enum Place {
    Http(HttpPlace),
    Store(StorePlace),
    File(PathBuf),
}

impl Place {
    /// Returns what is available or unavailable as a whole: a server, a bucket or a folder.
    pub(crate) fn site(&self) -> String {
        match self {
            Self::Http(place) => place.url.origin().ascii_serialization(),
            Self::Store(place) => place.bucket.clone(),
            Self::File(path) => path.parent().unwrap_or(path).display().to_string(),
        }
    }
}

/// An object on an HTTP server.
#[derive(Clone)]
pub(crate) struct HttpPlace {
    /// The address without user, password and fragment.
    pub(crate) url: Url,
    /// The user, with the password if there is one.
    pub(crate) user: Option<(String, Option<String>)>,
}

/// An object in an object store.
#[derive(Clone)]
pub(crate) struct StorePlace {
    pub(crate) kind: StoreKind,
    /// Scheme and bucket or container, as a URL.
    pub(crate) bucket: String,
    /// The name of the object, not encoded.
    pub(crate) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    S3,
    Google,
    Azure,
}

/// A parsed address, and its form without secrets.
pub(crate) struct Address {
    pub(crate) place: Place,
    /// The address without secrets.
    pub(crate) plain: String,
}

/// The syntax of the addresses of a scheme.
enum Form {
    Http,
    File,
    /// An object store, with the scheme in keys and an example of an address.
    Store(StoreKind, &'static str, &'static str),
}

impl Form {
    fn of(scheme: &str) -> Option<Self> {
        Some(match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => Self::Http,
            "file" => Self::File,
            "s3" | "s3a" => Self::Store(StoreKind::S3, "s3", "s3://bucket/key"),
            "gs" | "gcs" => Self::Store(StoreKind::Google, "gs", "gs://bucket/key"),
            "az" | "azure" | "adl" => Self::Store(StoreKind::Azure, "az", "az://container/path"),
            "abfs" | "abfss" => {
                let form = "abfss://container@account.dfs.core.windows.net/path";
                Self::Store(StoreKind::Azure, "abfss", form)
            }
            _ => return None,
        })
    }
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let Some((scheme, rest)) = text.split_once("://") else { return path(text) };
        match Form::of(scheme) {
            Some(Form::Http) => http(text),
            Some(Form::File) => {
                let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
                file(&path.ok_or_else(|| unreadable("file", "file:///an/absolute/path"))?)
            }
            Some(Form::Store(kind, scheme, form)) => store(kind, scheme, rest, form),
            None => Err(unreadable("one of another scheme", SCHEMES)),
        }
    }
}

const SCHEMES: &str = "http, https, s3, gs, az, abfss, file";

/// Parses a path. Refuses a path that begins like a URL: it may be a URL with a typing error that
/// contains a password, which would be shown with the path.
fn path(text: &str) -> Result<Address> {
    if text.split_once(':').is_some_and(|(scheme, _)| Form::of(scheme).is_some()) {
        return Err(unreadable("a scheme without ://", SCHEMES));
    }
    file(Path::new(text))
}

fn unreadable(found: &str, expected: &'static str) -> Error {
    Error::Address { address: found.to_owned(), expected }
}

fn file(path: &Path) -> Result<Address> {
    let expected = "the path of a file";
    let path = std::path::absolute(path).map_err(|_| unreadable("an empty path", expected))?;
    let url = Url::from_file_path(&path).map_err(|()| unreadable("a path", expected))?;
    Ok(Address { plain: url.into(), place: Place::File(path) })
}

fn store(
    kind: StoreKind,
    scheme: &'static str,
    rest: &str,
    expected: &'static str,
) -> Result<Address> {
    let (bucket, name) = rest.split_once('/').unwrap_or((rest, ""));
    // Azure has a container before the `@`; a password has a colon.
    let unexpected = bucket.is_empty() || bucket.contains(':');
    if unexpected || name.is_empty() || (kind != StoreKind::Azure && bucket.contains('@')) {
        let found = if unexpected { "no bucket" } else { "no name" };
        return Err(unreadable(&format!("{scheme}:// with {found}"), expected));
    }
    let bucket = format!("{scheme}://{bucket}");
    let plain = format!("{bucket}/{name}");
    let place = StorePlace { kind, bucket, name: name.to_owned() };
    Ok(Address { place: Place::Store(place), plain })
}

fn http(text: &str) -> Result<Address> {
    let expected = "http://host/path or https://host/path";
    let mut url = Url::parse(text).map_err(|error| unreadable(&error.to_string(), expected))?;
    url.set_fragment(None);
    let decoded =
        |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let password = url.password().map(decoded);
    let user = (!url.username().is_empty() || password.is_some())
        .then(|| (decoded(url.username()), password));
    // The address has a host, so both can be set.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    let mut plain = url.clone();
    plain.set_query(kept_query(&url).as_deref());
    Ok(Address { plain: plain.into(), place: Place::Http(HttpPlace { url, user }) })
}

/// Returns a hash of the parameters that do not only sign the request. Any of them may be a secret,
/// so none is shown.
fn kept_query(url: &Url) -> Option<String> {
    let pairs: Vec<&str> = url.query()?.split('&').filter(|pair| !pair.is_empty()).collect();
    let name = |pair: &str| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        percent_encoding::percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase()
    };
    let names: Vec<String> = pairs.iter().map(|pair| name(pair)).collect();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let signed = |name: &str| {
        (name.starts_with("x-amz-") && has("x-amz-signature"))
            || (name.starts_with("x-goog-") && has("x-goog-signature"))
            || (AZURE.contains(&name) && has("sig") && has("sv"))
            || (OLDER.contains(&name) && has("signature") && (has("expires") || has("policy")))
    };
    let kept: Vec<&str> = (pairs.iter().zip(&names))
        .filter(|(_, name)| !signed(name))
        .map(|(pair, _)| *pair)
        .collect();
    if kept.is_empty() {
        return None;
    }
    let hash = Sha256::digest(kept.join("&"));
    let half = hash.iter().take(16).fold(0_u128, |half, byte| half << 8 | u128::from(*byte));
    Some(format!("sha256={half:032x}"))
}

/// Parameters of Azure's shared access signatures.
const AZURE: &[&str] = &[
    "sig", "se", "sp", "sv", "sr", "st", "spr", "sip", "ss", "srt", "skoid", "sktid", "skt", "ske",
    "sks", "skv", "saoid", "suoid", "scid", "sdd", "ses", "si",
];

/// Parameters of older signatures of S3 and Google, and of `CloudFront`.
const OLDER: &[&str] =
    &["signature", "expires", "policy", "key-pair-id", "awsaccesskeyid", "googleaccessid"];

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).plain
    }

    #[test]
    fn secrets_are_no_part_of_a_plain_address() {
        assert_eq!(plain("HTTPS://me:pa%20ss@Host:443/a/b#part"), "https://host/a/b");
        let signed = "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Credential=C\
                      &X-Amz-Signature=S&X-Amz-Security-Token=T";
        assert_eq!(plain(signed), "https://b.s3.amazonaws.com/k");
        let shared = "https://a.blob.core.windows.net/c/f?sv=2024&sig=abc&se=2030&sp=r";
        assert_eq!(plain(shared), "https://a.blob.core.windows.net/c/f");
        assert_eq!(plain("https://h/k?Expires=1&Signature=s&Key-Pair-Id=i"), "https://h/k");
        let google = "https://storage.googleapis.com/b/k?X-Goog-Signature=s&X-Goog-Date=d";
        assert_eq!(plain(google), "https://storage.googleapis.com/b/k");
    }

    #[test]
    fn other_parameters_are_a_part_of_it_as_a_hash() {
        let one = plain("http://h/k?file=1&token=secret");
        assert!(one.starts_with("http://h/k?sha256=") && one.len() == 50, "{one}");
        assert_ne!(one, plain("http://h/k?file=2&token=secret"));
        // Names that Azure's signatures have mean something else without a signature.
        assert_ne!(plain("http://h/k?st=1"), plain("http://h/k?st=2"));
        // Renewing a signature does not change it.
        let renewed = |number: u32| {
            plain(&format!("http://h/k?versionId=7&X-Amz-Signature={number}&X-Amz-Date={number}"))
        };
        assert_eq!(renewed(1), renewed(2));
        assert_eq!(renewed(1), plain("http://h/k?versionId=7"));
    }

    #[test]
    fn user_and_password_are_kept_for_the_request() {
        let address = Address::parse("http://me:p%40ss@h/k?a=b").expect("an address");
        let Place::Http(place) = address.place else { panic!("not http") };
        assert_eq!(place.url.as_str(), "http://h/k?a=b");
        assert_eq!(place.user, Some(("me".into(), Some("p@ss".into()))));
    }

    #[test]
    fn stores_have_buckets_and_names_as_they_are() {
        assert_eq!(plain("s3a://bucket/a b/c%20d?e#f"), "s3://bucket/a b/c%20d?e#f");
        assert_eq!(plain("gcs://bucket/key"), "gs://bucket/key");
        let azure = "abfss://container@account.dfs.core.windows.net/path";
        assert_eq!(plain(azure), azure);
        for bad in ["s3://bucket", "s3:///key", "s3://id:secret@bucket/key", "ftp://h/f", "http://"]
        {
            let error = Address::parse(bad).err().unwrap_or_else(|| panic!("{bad} was taken"));
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_url_with_a_slip_is_no_path_that_shows_its_password() {
        for bad in ["https:/me:secret@host/a", "http:me:secret@host", "HTTPS:\\\\me:secret@host\\a"]
        {
            let error = Address::parse(bad).err().unwrap_or_else(|| panic!("{bad} was taken"));
            assert!(error.to_string().contains("a scheme without ://"), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn paths_are_files() {
        assert_eq!(plain("/data/a b"), "file:///data/a%20b");
        assert_eq!(plain("file:///data/a%20b"), "file:///data/a%20b");
        assert!(plain("relative").ends_with("/relative"));
        assert!(Address::parse("").is_err());
        assert!(plain("a:b").ends_with("/a:b"));
    }
}
