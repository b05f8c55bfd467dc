//! Who may see what on an admin endpoint: names of the server, and the file with the token.

use crate::files::read_secret;
use crate::outcome::Failure;
use nuthatch_listen::SecretHash;
use nuthatch_listen::admin::AccessRules;
use std::path::Path;

/// Minimum length of a token in bytes. Shorter ones could be guessed.
const MIN_TOKEN_LEN: usize = 16;

/// Maximum length of a name in the domain name system.
const MAX_HOST_LEN: usize = 253;

/// Reads the rules of an admin endpoint.
pub(crate) fn admin_rules(
    hosts: &[String],
    token_file: Option<&Path>,
) -> Result<AccessRules, Failure> {
    let token = token_file.map(read_token).transpose()?;
    let token = token.map(|token| SecretHash::of(token.as_bytes()));
    Ok(AccessRules { hosts: hosts.to_vec(), token })
}

/// Reads the token of an admin endpoint.
pub(crate) fn read_token(file: &Path) -> Result<String, Failure> {
    let token = read_secret(file, "a token")?;
    if token.len() >= MIN_TOKEN_LEN && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(token);
    }
    let (file, found) = (file.display(), token.len());
    Err(Failure::Error(format!(
        "{file}: expected a token of at least {MIN_TOKEN_LEN} visible ASCII characters, found \
         {found} bytes; `openssl rand -hex 32` makes one"
    )))
}

/// Checks a name of a server, as the header `Host` has it without the port.
///
/// # Errors
///
/// Returns what was expected and what was found.
pub(crate) fn check_host(name: &str) -> Result<(), String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.bytes().all(is_part) && (1..=MAX_HOST_LEN).contains(&name.len()) {
        return Ok(());
    }
    Err(format!(
        "expected a name without http:// and without a port, such as cache-7.example.com, found \
         {name:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_port_and_no_scheme() {
        for name in ["localhost", "cache-7.example.com", "a_b", "10.0.0.1"] {
            assert_eq!(check_host(name), Ok(()), "{name}");
        }
        for name in ["", "a:80", "http://a", "a/b", "*", "*.example.com", "[::1]", "a b"] {
            let error = check_host(name).expect_err(name);
            assert!(error.contains(&format!("found {name:?}")), "{error}");
        }
    }
}
