//! What a request shows so that it is answered.

use std::fmt;

/// What requests for an object of `http` or `https` show, besides what its address has: headers,
/// sent to the host of the address alone. Other origins take theirs from the environment.
#[derive(Clone, Default)]
pub struct Access {
    pub(crate) headers: Vec<(String, String)>,
}

impl Access {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A header of every request. Its value is taken for a secret.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// A token, as `Authorization: Bearer`.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Access").field("headers", &names).finish()
    }
}
