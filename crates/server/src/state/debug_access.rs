//! Which clients may use `DEBUG`.

use std::net::SocketAddr;

/// Which clients may use `DEBUG`: the setting `enable-debug-command`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Debugging {
    /// None.
    #[default]
    No,
    /// Clients that connect through a loopback address or a socket file.
    Local,
    /// All clients.
    Yes,
}

impl Debugging {
    /// Returns the value of the setting: `no`, `local` or `yes`.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Local => "local",
            Self::Yes => "yes",
        }
    }

    /// Parses a value of the setting. Returns `None` for other texts.
    pub fn named(name: &str) -> Option<Self> {
        [Self::No, Self::Local, Self::Yes].into_iter().find(|one| one.name() == name)
    }

    pub(crate) fn allows(self, peer: &str) -> bool {
        match self {
            Self::No => false,
            Self::Local => is_local(peer),
            Self::Yes => true,
        }
    }
}

/// Returns whether a client is on this machine.
fn is_local(peer: &str) -> bool {
    let address = peer.parse().map(|address: SocketAddr| address.ip().to_canonical());
    peer == "unix" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_clients_and_socket_files_are_local() {
        for peer in ["unix", "127.0.0.1:5", "[::1]:5", "127.9.9.9:1", "[::ffff:127.0.0.1]:1"] {
            assert!(Debugging::Local.allows(peer), "{peer}");
            assert!(!Debugging::No.allows(peer), "{peer}");
        }
        for peer in ["10.0.0.1:5", "[2001:db8::1]:5", "0.0.0.0:5", "", "127.0.0.1"] {
            assert!(!Debugging::Local.allows(peer), "{peer}");
            assert!(Debugging::Yes.allows(peer), "{peer}");
        }
    }
}
