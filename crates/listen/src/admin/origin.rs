//! Where a request comes from: refuses those of pages of other sites.
//!
//! A page of another site can make a browser send requests here. Two things protect the endpoint:
//!
//! - **Cross-site requests**: browsers name their origin in `Sec-Fetch-Site` or `Origin`. Requests
//!   of other sites are refused, except that a link may open a page.
//! - **DNS rebinding**: a site can make its own name resolve to the address of this endpoint, so
//!   that its page and the endpoint are one origin for the browser. Then the header `Host` has that
//!   name. So names other than `localhost` need a setting. Addresses do not: a page of this address
//!   is one of this endpoint.
//!
//! Scrapers and probes of health use names of their own choice, and are no browsers. On their
//! paths, only requests of browsers are checked; all browsers send `Accept-Language`, and no page
//! can prevent it.

use super::access::Access;
use hyper::header::{ACCEPT_LANGUAGE, HOST, HeaderName, ORIGIN, REFERER};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Request};
use std::net::IpAddr;

/// Maximum characters of a name in a message.
const MAX_SHOWN_LEN: usize = 80;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Which requests are checked for the name of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// All of them.
    People,
    /// Those of browsers; scrapers and probes use any name.
    Programs,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is for a name that is none of this server.
    Host(String),
    /// A page of another site has sent it.
    CrossSite,
}

/// Checks the origin of a request that came from the network.
pub(super) fn check<B>(
    request: &Request<B>,
    access: &Access,
    audience: Audience,
) -> Result<(), Refusal> {
    let headers = request.headers();
    if audience == Audience::People || is_of_browser(headers) {
        let in_target = request.uri().authority().map(Authority::as_str);
        let hosts = headers.get_all(HOST).iter();
        let hosts = hosts.map(|host| host.to_str().unwrap_or("(not ASCII)"));
        if let Some(host) = hosts.chain(in_target).find(|host| !is_own_host(host, access)) {
            return Err(Refusal::Host(host.chars().take(MAX_SHOWN_LEN).collect()));
        }
    }
    if is_cross_site(headers) { Err(Refusal::CrossSite) } else { Ok(()) }
}

fn is_of_browser(headers: &HeaderMap) -> bool {
    [ACCEPT_LANGUAGE, ORIGIN, REFERER, FETCH_SITE, FETCH_MODE, FETCH_DEST]
        .iter()
        .any(|name| headers.contains_key(name))
}

/// Returns whether a `Host` is one of this server: `localhost`, an address, or a name of the rules.
fn is_own_host(host: &str, access: &Access) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    if host.contains('@') {
        return false;
    }
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_local = name.eq_ignore_ascii_case("localhost");
    is_local || address.parse::<IpAddr>().is_ok() || access.has_host(name)
}

fn is_cross_site(headers: &HeaderMap) -> bool {
    let value = |name: &HeaderName| headers.get(name).map(hyper::header::HeaderValue::as_bytes);
    match value(&FETCH_SITE) {
        Some(b"same-origin" | b"none") => false,
        // A link on another site.
        Some(_) if value(&FETCH_MODE) == Some(b"navigate") => {
            value(&FETCH_DEST) != Some(b"document")
        }
        Some(_) => true,
        // Browsers send the header to secure origins only. They name another origin in `Origin`.
        None => value(&ORIGIN).is_some_and(|origin| {
            let host = value(&HOST).unwrap_or_default();
            origin.strip_prefix(b"http://") != Some(host)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::AccessRules;
    use super::*;
    use Audience::{People, Programs};

    fn checked(headers: &[(&str, &str)], audience: Audience) -> Result<(), Refusal> {
        let rules = AccessRules { hosts: vec!["cache-7.example".to_owned()], token: None };
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(()).expect("a request"), &Access::new(rules), audience)
    }

    #[test]
    fn names_of_other_sites_are_refused() {
        for host in [
            "localhost",
            "LOCALHOST:9464",
            "127.0.0.1:9464",
            "10.1.2.3",
            "[::1]:9464",
            "cache-7.example:9464",
            "Cache-7.example",
            "localhost.",
        ] {
            assert_eq!(checked(&[("host", host)], People), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9464",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "cache-7.example.evil",
            "",
            "localhost@evil.example",
            "evil@localhost",
            "::1",
            "0x7f.1",
        ] {
            let refused = Err(Refusal::Host(host.to_owned()));
            assert_eq!(checked(&[("host", host)], People), refused, "{host}");
        }
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(checked(&two, People), Err(Refusal::Host("evil.example".to_owned())));
    }

    #[test]
    fn scrapers_use_any_name_and_browsers_do_not() {
        let host = ("host", "nuthatch.default.svc");
        assert_eq!(checked(&[host], Programs), Ok(()));
        for header in ["accept-language", "origin", "referer", "sec-fetch-site", "sec-fetch-mode"] {
            let found = checked(&[host, (header, "none")], Programs);
            assert_eq!(found, Err(Refusal::Host("nuthatch.default.svc".to_owned())), "{header}");
        }
    }

    #[test]
    fn requests_of_other_sites_are_refused_and_links_work() {
        let host = ("host", "localhost:9464");
        for (headers, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], Ok(())),
            (&[("sec-fetch-site", "none")], Ok(())),
            (&[("sec-fetch-site", "cross-site")], Err(Refusal::CrossSite)),
            // Another port of this machine.
            (&[("sec-fetch-site", "same-site")], Err(Refusal::CrossSite)),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "document"),
                ],
                Ok(()),
            ),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "iframe"),
                ],
                Err(Refusal::CrossSite),
            ),
            (&[("origin", "http://localhost:9464")], Ok(())),
            (&[("origin", "http://evil.example")], Err(Refusal::CrossSite)),
            (&[("origin", "null")], Err(Refusal::CrossSite)),
        ] {
            for audience in [People, Programs] {
                let all = [&[host], headers].concat();
                assert_eq!(checked(&all, audience), expected, "{headers:?}");
            }
        }
    }
}
