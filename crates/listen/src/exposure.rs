//! Refuses addresses that other machines can reach without TLS or a login.

use std::net::SocketAddr;

/// How a server protects the data that it serves.
#[derive(Clone, Copy, Debug)]
pub struct Protection {
    /// Whether connections use TLS.
    pub has_tls: bool,
    /// Whether clients need a token or a client certificate.
    pub requires_login: bool,
}

/// Checks the addresses of a server, and returns the text of the first problem, or `None`:
///
/// - There is no address.
/// - Other machines can reach an address, and the server has no TLS or requires no login. With
///   `is_insecure`, this is no problem.
#[must_use]
pub fn exposure_problem(
    addresses: &[SocketAddr],
    protection: Protection,
    is_insecure: bool,
) -> Option<String> {
    if addresses.is_empty() {
        return Some("expected an address to listen on, found none".to_owned());
    }
    let address = addresses.iter().find(|address| !address.ip().is_loopback())?;
    if is_insecure {
        return None;
    }
    let problem = match (protection.has_tls, protection.requires_login) {
        (false, _) => {
            "this address is reachable by other machines, and connections to it are not \
             encrypted; expected TLS"
        }
        (true, false) => {
            "this address is reachable by other machines and needs no login; expected tokens, or \
             certificates of clients"
        }
        (true, true) => return None,
    };
    Some(format!("{address}: {problem}, found none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_other_machines_reach_need_tls_and_a_login() {
        let problem = |address: &str, has_tls, requires_login| {
            let address = address.parse().expect("an address");
            exposure_problem(&[address], Protection { has_tls, requires_login }, false)
        };
        assert_eq!(problem("127.0.0.1:1", false, false), None);
        assert_eq!(problem("[::1]:1", false, false), None);
        let unencrypted = problem("0.0.0.0:1", false, true).expect("a problem");
        assert!(unencrypted.starts_with("0.0.0.0:1: ") && unencrypted.contains("expected TLS"));
        let open = problem("10.0.0.1:1", true, false).expect("a problem");
        assert!(open.ends_with("expected tokens, or certificates of clients, found none"));
        assert_eq!(problem("10.0.0.1:1", true, true), None);
        let none = Protection { has_tls: false, requires_login: false };
        let address = "0.0.0.0:1".parse().expect("an address");
        assert_eq!(exposure_problem(&[address], none, true), None);
        assert!(exposure_problem(&[], none, true).is_some());
    }
}
