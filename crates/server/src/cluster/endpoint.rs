//! Addresses of nodes.

use nuthatch_cluster::node::Node;

/// The address of a node, for clients or for other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    /// The name or the address of the host, without brackets.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

impl Endpoint {
    /// Parses `host:port`. `None` for a node that clients cannot connect to.
    pub(crate) fn parse(address: &str) -> Option<Self> {
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some(Self { host, port: port.parse().ok()? })
    }

    /// Returns the address of a node for other nodes: that for clients, unless it has announced
    /// another one.
    pub(crate) fn for_nodes(node: &Node) -> Option<Self> {
        let addresses = &node.addresses;
        let has_own = !addresses.node.is_empty();
        Self::parse(if has_own { &addresses.node } else { &addresses.client })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_hosts_without_brackets() {
        let endpoint = |host: &str, port| Some(Endpoint { host: host.to_owned(), port });
        assert_eq!(Endpoint::parse("cache-1:6379"), endpoint("cache-1", 6379));
        assert_eq!(Endpoint::parse("[::1]:7000"), endpoint("::1", 7000));
        assert_eq!(Endpoint::parse(""), None);
    }
}
