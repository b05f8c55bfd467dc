//! Settings of `CONFIG GET` that describe listeners and threads, under their Redis names.

use crate::net::listener::Listener;
use crate::protocol::Protocol;
use nuthatch_listen::Address;

/// Returns the settings that describe RESP listeners and threads.
pub(crate) fn fixed_settings(
    listeners: &[Listener],
    threads: usize,
) -> Vec<(&'static str, String)> {
    let resp = || listeners.iter().filter(|listener| listener.protocol == Protocol::Resp);
    let (mut hosts, mut paths) = (Vec::new(), Vec::new());
    for listener in resp() {
        match &listener.address {
            Address::Tcp(address) => {
                let host = address.ip().to_string();
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
            Address::Unix(path) => paths.push(path.display().to_string()),
        }
    }
    // Redis has one port of each kind for all addresses. The first one represents them.
    let port = |tls| {
        let mut of_kind = resp().filter(|listener| listener.tls == tls);
        of_kind.find_map(|listener| listener.address.port()).unwrap_or(0).to_string()
    };
    vec![
        ("bind", hosts.join(" ")),
        ("port", port(false)),
        ("tls-port", port(true)),
        ("unixsocket", paths.join(" ")),
        ("io-threads", threads.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_settings_of_redis_are_reported() {
        let all = [
            (Protocol::Memcache, "10.0.0.1:11211"),
            (Protocol::Resp, "unix:/run/a.sock"),
            (Protocol::Resp, "127.0.0.1:7000"),
            (Protocol::Resp, "[::1]:7001"),
            (Protocol::Resp, "127.0.0.1:7002"),
        ];
        let listeners = all.map(|(protocol, address)| {
            Listener::new(protocol, address.parse().expect("an address"))
        });
        let fixed_settings = fixed_settings(&listeners, 3);
        let expected = [
            ("bind", "127.0.0.1 ::1"),
            ("port", "7000"),
            ("tls-port", "0"),
            ("unixsocket", "/run/a.sock"),
            ("io-threads", "3"),
        ];
        assert_eq!(fixed_settings, expected.map(|(name, text)| (name, text.to_owned())));
    }
}
