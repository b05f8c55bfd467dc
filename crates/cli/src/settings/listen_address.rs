//! Addresses to listen at, in the notation of settings.

use nuthatch_listen::Address;
use std::fmt;
use std::path::Path;

/// An address, and whether it uses TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    /// The text of the setting, which can have the name of a host.
    text: String,
    pub(crate) tls: bool,
    pub(crate) address: Address,
}

impl ListenAddress {
    /// Parses `host:port`, `unix:PATH` or `tls:host:port`. Relative paths are relative to `from`.
    pub(crate) fn parse(text: &str, from: &Path) -> Result<Self, String> {
        let (tls, rest) = match text.strip_prefix("tls:") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if tls && rest.starts_with("unix:") {
            let text = "expected host:port behind `tls:`, found a socket in the file system";
            return Err(text.to_owned());
        }
        let mut address: Address = rest.parse()?;
        let mut text = text.to_owned();
        if let Address::Unix(path) = &mut address {
            *path = from.join(&path);
            text = format!("unix:{}", path.display());
        }
        Ok(Self { text, tls, address })
    }

    /// Returns the address with an absolute path.
    pub(crate) fn absolute(&self) -> String {
        match &self.address {
            Address::Unix(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("unix:{}", path.display())
            }
            Address::Tcp(_) => self.text.clone(),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_formatted() {
        let from = Path::new("/etc/nuthatch");
        for (text, tls, expected) in [
            ("127.0.0.1:6379", false, "127.0.0.1:6379"),
            ("tls:[::]:6380", true, "tls:[::]:6380"),
            ("unix:/run/a.sock", false, "unix:/run/a.sock"),
            ("unix:a.sock", false, "unix:/etc/nuthatch/a.sock"),
        ] {
            let listen_address = ListenAddress::parse(text, from).expect("an address");
            assert_eq!(
                (listen_address.tls, &listen_address.to_string()[..]),
                (tls, expected),
                "{text}"
            );
            assert_eq!(listen_address.absolute(), expected);
        }
        for text in ["", "off", "tls:", "tls:unix:/run/a.sock", "tls:tls:[::]:1", "unix:"] {
            assert!(ListenAddress::parse(text, from).is_err(), "{text}");
        }
    }
}
