//! Who may use `DEBUG`.

use std::net::SocketAddr;

/// Who may use `DEBUG`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Debugging {
    /// Nobody.
    #[default]
    No,
    /// Whoever connects from this machine.
    Local,
    /// Everybody.
    Yes,
}

impl Debugging {
    /// As the setting has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Local => "local",
            Self::Yes => "yes",
        }
    }

    /// What the setting calls so.
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

/// Whether a client connects from this machine.
fn is_local(peer: &str) -> bool {
    let address = peer.parse().map(|address: SocketAddr| address.ip().to_canonical());
    peer == "unix" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_this_machine_are_local() {
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
