//! An address to listen at, as users write it.

use nuthatch_server::Address;
use std::fmt;
use std::path::Path;

/// An address, with what stands before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// As it was written, which may be a name that became an address.
    text: String,
    pub(crate) tls: bool,
    pub(crate) address: Address,
}

impl Place {
    /// Reads `host:port`, `unix:PATH` or `tls:host:port`. Paths are from the folder `from` on.
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

    /// The same as long as the machine is the same, wherever it is read.
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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_written() {
        let from = Path::new("/etc/nuthatch");
        for (text, tls, shown) in [
            ("127.0.0.1:6379", false, "127.0.0.1:6379"),
            ("tls:[::]:6380", true, "tls:[::]:6380"),
            ("unix:/run/a.sock", false, "unix:/run/a.sock"),
            ("unix:a.sock", false, "unix:/etc/nuthatch/a.sock"),
        ] {
            let place = Place::parse(text, from).expect("a place");
            assert_eq!((place.tls, &place.to_string()[..]), (tls, shown), "{text}");
            assert_eq!(place.absolute(), shown);
        }
        for text in ["", "off", "tls:", "tls:unix:/run/a.sock", "tls:tls:[::]:1", "unix:"] {
            assert!(Place::parse(text, from).is_err(), "{text}");
        }
    }
}
