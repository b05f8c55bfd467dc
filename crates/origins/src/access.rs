//! Credentials for requests to origins.

use reqwest::header::{HeaderName, HeaderValue};
use std::fmt;

/// Headers for requests of `http` and `https`, in addition to the credentials in the address. They
/// are only sent to the host of the address. Other origins take credentials from the environment.
#[derive(Clone, Default)]
pub struct Access {
    pub(crate) headers: Vec<(String, String)>,
}

impl Access {
    /// Returns an empty set of headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a header. Its value is treated as a secret.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a header from a text `NAME: VALUE`.
    ///
    /// # Errors
    ///
    /// Fails if the text has no colon or is not a valid header. The error describes the expected
    /// text. It does not contain the text, which may be a secret.
    pub fn line(self, line: &str) -> Result<Self, &'static str> {
        let (name, value) = line.split_once(':').ok_or("NAME: VALUE")?;
        let (name, value) = (name.trim(), value.trim());
        parse(name, value)?;
        Ok(self.header(name, value))
    }

    /// Adds a token, as `Authorization: Bearer`.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }
}

/// Parses a header. The error describes what was expected, without the text.
pub(crate) fn parse(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "the name of a header")?;
    let value = HeaderValue::from_str(value).map_err(|_| "a value without control characters")?;
    Ok((name, value))
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Access").field("headers", &names).finish()
    }
}
