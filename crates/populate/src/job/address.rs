//! Addresses of sources.

use std::fmt;
use std::path::{Path, PathBuf};
use url::Url;

/// The address of a source. Its display has no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `postgresql://user@host:port/database`.
    Postgres(Url),
    /// `mysql://user@host:port/database`, for MySQL and MariaDB.
    Mysql(Url),
    /// `sqlite:path`.
    Sqlite(PathBuf),
    /// A path, or `s3://`, `gs://`, `az://` or `https://`. The last part of a path can have `*`.
    Files(String),
}

impl Address {
    /// Parses an address. Relative paths are relative to the folder.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found.
    pub(super) fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            return Ok(Self::Sqlite(folder.join(path)));
        }
        let is_url = |scheme: &str| text.starts_with(&format!("{scheme}:"));
        let Some((scheme, rest)) = text.split_once("://") else {
            // It can have a password, so the message does not show it.
            if ["postgresql", "postgres", "mysql", "mariadb"].into_iter().any(is_url) {
                return Err("expected an address such as postgresql://user@host/db".to_owned());
            }
            return Ok(Self::Files(folder.join(text).display().to_string()));
        };
        let url = || {
            let url = Url::parse(text);
            // The text can have a password, which errors must not show.
            url.map_err(|error| format!("{scheme}://…: expected an address with a host: {error}"))
        };
        match scheme {
            "postgresql" | "postgres" => Ok(Self::Postgres(database(url()?)?)),
            "mysql" | "mariadb" => {
                let mut url = database(url()?)?;
                let _ = url.set_scheme("mysql");
                Ok(Self::Mysql(url))
            }
            "s3" | "gs" | "az" | "http" | "https" => {
                let host = rest.split('/').next().unwrap_or_default();
                if rest.contains('?') || host.contains('@') {
                    return Err(format!(
                        "{scheme}://…: expected an address without a user and a query"
                    ));
                }
                Ok(Self::Files(text.to_owned()))
            }
            "file" => Ok(Self::Files(text["file://".len()..].to_owned())),
            scheme => Err(format!(
                "expected postgresql://, mysql://, sqlite:PATH, a path, s3://, gs://, az:// or \
                 https://, found {scheme}://"
            )),
        }
    }

    /// Returns a text that differs for addresses of different contents, without the password.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Postgres(url) | Self::Mysql(url) => {
                let mut plain = url.clone();
                let _ = plain.set_password(None);
                let others = url.query_pairs().filter(|(name, _)| name != "password");
                let others: Vec<_> = others.collect();
                plain.set_query(None);
                format!("{plain} {others:?}")
            }
            Self::Sqlite(_) | Self::Files(_) => self.to_string(),
        }
    }

    /// Returns whether this is a database, which has queries.
    pub(crate) fn is_database(&self) -> bool {
        !matches!(self, Self::Files(_))
    }
}

/// Checks the address of a database.
fn database(url: Url) -> Result<Url, String> {
    // A password with such characters ends elsewhere than its author thinks, and would be shown.
    if url.fragment().is_some() || url.path().contains('@') {
        let scheme = url.scheme();
        return Err(format!(
            "{scheme}://…: expected the characters / # ? @ of a password as %2F %23 %3F %40"
        ));
    }
    Ok(url)
}

/// Returns a text without the passwords of addresses in it.
pub(super) fn redacted(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || c == '"' || c == '`');
        let (address, after) = after.split_at(end.unwrap_or(after.len()));
        match address.rsplit_once('@') {
            Some((_, host)) => {
                shown.push_str("…@");
                shown.push_str(host);
            }
            None => shown.push_str(address),
        }
        rest = after;
    }
    shown + rest
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(url) | Self::Mysql(url) => {
                let mut plain = url.clone();
                let _ = plain.set_password(None);
                plain.set_query(None);
                plain.fmt(f)
            }
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Files(address) => f.write_str(address.split('?').next().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        for (text, shown) in [
            ("postgresql://u:a5ecret@db:5433/app?sslmode=require", "postgresql://u@db:5433/app"),
            ("mariadb://u:a5ecret@db/app", "mysql://u@db/app"),
            ("sqlite:users.db", "sqlite:/jobs/users.db"),
            ("data/*.csv", "/jobs/data/*.csv"),
            ("https://host/a.csv", "https://host/a.csv"),
        ] {
            let address = Address::parse(text, Path::new("/jobs")).expect(text);
            assert_eq!(address.to_string(), shown);
        }
    }

    #[test]
    fn passwords_in_texts_are_redacted() {
        let text = redacted("invalid type: string \"mysql://u:a5ecret@h/d\", expected x://y");
        assert_eq!(text, "invalid type: string \"mysql://…@h/d\", expected x://y");
    }

    #[test]
    fn invalid_addresses_do_not_show_their_text() {
        let error =
            Address::parse("postgresql://u:a5ecret@:x/", Path::new("")).expect_err("a port");
        assert!(!error.contains("a5ecret"), "{error}");
        let error = Address::parse("oracle://db", Path::new("")).expect_err("a scheme");
        assert!(error.contains("found oracle://"), "{error}");
    }
}
