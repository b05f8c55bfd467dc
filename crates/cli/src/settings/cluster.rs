//! The values of the settings of a cluster.

use nuthatch_cluster::etcd::EtcdOptions;
use nuthatch_cluster::keys::Keys;
use nuthatch_cluster::node::is_address;

/// The schemes of the address of a cluster, without and with TLS.
const SCHEME: &str = "etcd://";
const TLS_SCHEME: &str = "etcds://";

/// A cluster: where its etcd is, and the keys in it.
pub(crate) struct ClusterAddress {
    pub(crate) etcd: EtcdOptions,
    /// Whether connections to etcd have TLS.
    pub(crate) has_tls: bool,
    pub(crate) keys: Keys,
}

/// Checks a value of `cluster`.
///
/// # Errors
///
/// Returns what was expected and what was found.
pub(crate) fn check(text: &str) -> Result<(), String> {
    address(text).map(drop)
}

/// Returns the cluster of a value of `cluster`; `None` if the server is in none.
///
/// # Errors
///
/// Returns what was expected and what was found, without a password.
pub(crate) fn address(text: &str) -> Result<Option<ClusterAddress>, String> {
    if text == "off" {
        return Ok(None);
    }
    if text.contains('@') {
        let found = "found a user or a password in it; see --etcd-user";
        return Err(format!("expected off or etcd://HOST:PORT[,HOST:PORT...]/NAME, {found}"));
    }
    let has_tls = text.starts_with(TLS_SCHEME);
    let rest = text.strip_prefix(SCHEME).or_else(|| text.strip_prefix(TLS_SCHEME));
    let Some((endpoints, name)) = rest.and_then(|rest| rest.split_once('/')) else {
        let expected = "expected off or etcd://HOST:PORT[,HOST:PORT...]/NAME, or etcds:// for TLS";
        return Err(format!("{expected}, found {text:?}; try etcd://127.0.0.1:2379/cache"));
    };
    let endpoints: Vec<&str> = endpoints.split(',').collect();
    let etcd = EtcdOptions::new(&endpoints).map_err(|error| error.to_string())?;
    let keys = Keys::new(name).map_err(|error| format!("the name of the cluster: {error}"))?;
    Ok(Some(ClusterAddress { etcd, has_tls, keys }))
}

/// Checks a value of `announce`.
///
/// # Errors
///
/// Returns what was expected and what was found.
pub(crate) fn check_announced(text: &str) -> Result<(), String> {
    if text == "auto" || is_address(text) {
        return Ok(());
    }
    Err(format!("expected auto or HOST:PORT, found {text:?}; try cache-1.example.com:6379"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_endpoints_and_a_name() {
        assert!(address("off").is_ok_and(|found| found.is_none()));
        let found = address("etcd://a:1,b,[::1]:3/cache-1").expect("a cluster").expect("one");
        assert_eq!((found.keys.prefix(), found.has_tls), ("/nuthatch/cache-1/", false));
        let found = address("etcds://a/x").expect("a cluster").expect("one");
        assert_eq!((found.keys.prefix(), found.has_tls), ("/nuthatch/x/", true));
        for (text, error) in [
            ("etcd://a:1", "expected off or etcd://HOST:PORT[,HOST:PORT...]/NAME, or etcds:// for"),
            ("http://a:1/x", "expected off or etcd://"),
            ("etcd:///x", "expected an endpoint of etcd as host:port, found \"\""),
            ("etcd://a:0/x", "expected an endpoint of etcd as host:port, found \"a:0\""),
            ("etcd://a:1/", "the name of the cluster: expected a name of 1 to 64 letters"),
            ("etcd://a:1/x/y", "the name of the cluster: expected a name"),
        ] {
            let found = check(text).expect_err(text);
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn a_password_in_the_address_is_not_shown() {
        let error = check("etcd://me:s3cret@a:1/x").expect_err("a password");
        assert!(error.contains("found a user or a password") && !error.contains("s3cret"));
    }

    #[test]
    fn an_announced_address_has_a_port() {
        for text in ["auto", "cache-1:6379", "[::1]:6379"] {
            assert_eq!(check_announced(text), Ok(()));
        }
        for text in ["cache-1", "cache-1:0", ":6379", "a b:1"] {
            let error = check_announced(text).expect_err(text);
            assert!(error.starts_with("expected auto or HOST:PORT, found"), "{error}");
        }
    }
}
