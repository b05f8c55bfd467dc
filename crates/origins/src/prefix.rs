//! The address of an origin that paths of requests are appended to.

use crate::address::{Address, Place};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};
use std::fmt;

/// The characters that are percent-encoded in a path: all but unreserved characters and those
/// without a special meaning.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The name of an example object below an address.
const BELOW: &str = "n";

/// The maximum length of the path of a request in bytes.
const MAX_PATH_LEN: usize = 4096;

/// An address that ends with `/`. It may have a user and a password; its text form has neither.
#[derive(Clone)]
pub struct Prefix {
    address: String,
    /// The address without secrets.
    plain: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Paths and queries are appended as those of HTTP.
    Http,
    /// URLs of files: paths as in HTTP, and no queries.
    File,
    /// Names of objects and files, not encoded.
    Plain,
}

impl Prefix {
    /// Parses an address that [`ObjectCache::object`](crate::ObjectCache::object) accepts, without
    /// a query.
    ///
    /// # Errors
    ///
    /// Fails with a text of the form "expected X, found Y" if the address is not valid.
    pub fn parse(address: &str) -> Result<Self, String> {
        if address.is_empty() {
            return Err("expected an address, found nothing".to_owned());
        }
        let end = if address.ends_with('/') { "" } else { "/" };
        let prefix = format!("{address}{end}");
        // An error in the address is an error in each address below it.
        let below = Address::parse(&format!("{prefix}{BELOW}")).map_err(|e| e.to_string())?;
        let kind = match below.place {
            Place::Http(_) => Kind::Http,
            Place::File(_) if address.contains("://") => Kind::File,
            Place::File(_) | Place::Store(_) => Kind::Plain,
        };
        if kind != Kind::Plain && address.contains(['?', '#']) {
            return Err("expected an address without ? and #, found one".to_owned());
        }
        // In `http://` followed by the example name, the name would be the host.
        let plain = below.plain.strip_suffix(BELOW).filter(|plain| plain.ends_with('/'));
        let plain = plain.ok_or("expected an address with a host, found none")?.to_owned();
        Ok(Self { address: prefix, plain, kind })
    }

    /// Returns the address of the object with this path and query. It is always below the prefix.
    ///
    /// # Errors
    ///
    /// Fails with a text of the form "expected X" if the path or the query is not valid.
    pub fn join(&self, path: &str, query: Option<&str>) -> Result<String, &'static str> {
        if path.len() > MAX_PATH_LEN {
            return Err("expected a path of up to 4,096 bytes");
        }
        let path = path.strip_prefix('/').ok_or("expected a path that begins with /")?;
        let mut address = self.address.clone();
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        for segment in folders.split('/').filter(|_| !folders.is_empty()) {
            self.append(&mut address, segment)?;
            address.push('/');
        }
        // The name is empty in a path that ends with /.
        if !name.is_empty() {
            self.append(&mut address, name)?;
        }
        match (self.kind, query) {
            (_, None) => Ok(address),
            (Kind::Http, Some(query)) => Ok(format!("{address}?{query}")),
            _ => Err("expected no query: there is none in addresses of this origin"),
        }
    }

    /// Appends a segment of a path: decodes it, checks it, and encodes it in one way, so that an
    /// object has one address.
    fn append(&self, address: &mut String, segment: &str) -> Result<(), &'static str> {
        let decoded = percent_decode(segment.as_bytes()).decode_utf8();
        let decoded = decoded.map_err(|_| "expected a path in UTF-8")?;
        let escapes = |c: char| c.is_control() || c == '/' || c == '\\';
        match &*decoded {
            "" => Err("expected a name between two /"),
            "." | ".." => Err("expected a path without . and .."),
            name if name.contains(escapes) => Err("expected names without / and \\"),
            name if self.kind == Kind::Plain => {
                address.push_str(name);
                Ok(())
            }
            name => {
                address.extend(utf8_percent_encode(name, ENCODED));
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn http() -> Prefix {
        Prefix::parse("https://user:secret@host:8443/data").expect("an address")
    }

    #[test]
    fn paths_are_appended_in_one_form() {
        let join = |path, query| http().join(path, query);
        let at = |rest: &str| Ok(format!("https://user:secret@host:8443/data/{rest}"));
        assert_eq!(join("/", None), at(""));
        assert_eq!(join("/a/b", None), at("a/b"));
        assert_eq!(join("/a/b/", None), at("a/b/"));
        assert_eq!(join("/%61 b/c%2bd+e", None), at("a%20b/c+d+e"));
        assert_eq!(join("/a%3Fb%23c%25", None), at("a%3Fb%23c%25"));
        assert_eq!(join("/%C3%A9", None), at("%C3%A9"));
        assert_eq!(join("/user@other:80", None), at("user@other:80"));
        assert_eq!(join("/a", Some("v=1&w=%2F")), at("a?v=1&w=%2F"));
        let folder = Prefix::parse("/srv/data").expect("a folder");
        assert_eq!(folder.join("/a%20b", None), Ok("/srv/data/a b".to_owned()));
        assert!(folder.join("/a", Some("v=1")).is_err());
        let bucket = Prefix::parse("s3://bucket/models/").expect("an address");
        assert_eq!(bucket.join("/a%20b", None), Ok("s3://bucket/models/a b".to_owned()));
        let files = Prefix::parse("file:///srv/").expect("an address");
        assert_eq!(files.join("/a%20b", None), Ok("file:///srv/a%20b".to_owned()));
    }

    #[test]
    fn nothing_leads_out() {
        for path in [
            "",
            "a",
            "*",
            "/..",
            "/../a",
            "/a/..",
            "/a/../b",
            "/./a",
            "/%2e%2e/a",
            "/.%2E",
            "/a%2fb",
            "/a%2F..%2Fb",
            "/a%5cb",
            "/a\\..\\b",
            "//host/a",
            "/a//b",
            "/a%00",
            "/a%0d%0ab",
            "/%ff",
        ] {
            assert!(http().join(path, None).is_err(), "{path}");
        }
        assert!(http().join(&format!("/{}", "a".repeat(MAX_PATH_LEN)), None).is_err());
    }

    #[test]
    fn nobody_sees_the_password() {
        assert_eq!(http().to_string(), "https://host:8443/data/");
        assert_eq!(format!("{:?}", http()), "https://host:8443/data/");
        let at = Prefix::parse("http://host/a@b").expect("an address");
        assert_eq!(at.to_string(), "http://host/a@b/");
        let slashes = Prefix::parse("https:///user:secret@host/").expect("an address");
        assert_eq!(slashes.to_string(), "https://host/");
    }

    #[test]
    fn what_no_address_can_be_made_of_is_refused_and_not_shown() {
        for wrong in [
            "",
            "http://host/?a=secret",
            "https://host/a#secret",
            "file:///a?secret",
            "file://user:secret@host/",
            "http://",
            "https:///",
            "http://user:secret@",
            "http://user:secret@:x/",
            "http://user:sec/ret@host/",
            "https:/user:secret@host/",
            "https:\\\\user:secret@host\\",
            "ftp://user:secret@host/",
            " https://user:secret@host/",
            "s3://",
            "s3://user:secret@bucket/",
            "az://user:secret@container/",
        ] {
            let problem = Prefix::parse(wrong).err().unwrap_or_else(|| panic!("{wrong} was taken"));
            assert!(problem.contains("expected") && !problem.contains("sec"), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_refused_or_below_the_prefix(path in "/?[a./%25eE2fF\\\\@:?#é-]{0,24}") {
            let prefix = Prefix::parse("http://host/data").expect("an address");
            if let Ok(address) = prefix.join(&path, None) {
                let below = address.strip_prefix("http://host/data/").expect("below");
                for name in below.split('/') {
                    let name = percent_decode(name.as_bytes()).decode_utf8_lossy();
                    prop_assert!(name != "." && name != "..");
                }
                prop_assert!(!address.contains(['?', '#', '\\']));
                // What was normalised stays as it is.
                prop_assert_eq!(prefix.join(&format!("/{below}"), None), Ok(address.clone()));
            }
        }
    }
}
