//! What a node announces about itself in etcd.

use crate::node_id::NodeId;
use crate::text::InvalidText;
use std::fmt::Write;

/// The version of the protocol between nodes, and of the values in etcd.
pub const PROTOCOL: u32 = 1;

/// Whether a node owns slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Participation {
    /// It takes its part of the slots.
    Active,
    /// It has joined, and owns no slots until an operator activates it.
    Waiting,
    /// It moves its slots away, and takes no others.
    Draining,
}

impl Participation {
    /// Returns the name, as in the value of a node's key.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Draining => "draining",
        }
    }
}

/// Addresses of a node that other nodes and clients connect to, each as `host:port`. An address is
/// empty if the node does not listen there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// For clients that speak RESP.
    pub client: String,
    /// For other nodes.
    pub node: String,
    /// For clients that speak the protocol of memcached.
    pub memcached: String,
    /// The admin endpoint.
    pub admin: String,
}

/// A node, as it announces itself. Encoded as lines of a name and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its identifier, which is part of the key in etcd and not of the value.
    pub id: NodeId,
    /// The version of its protocol.
    pub protocol: u32,
    /// Its addresses.
    pub addresses: Addresses,
    /// When it started, in milliseconds since the Unix epoch. For operators only.
    pub started_ms: u64,
    /// Its share of the slots in proportion to the weights of other nodes, such as its memory in
    /// MiB. At least 1.
    pub weight: u32,
    /// Whether it owns slots.
    pub participation: Participation,
    /// Whether another node has requested, for an operator, that this one ends its lease.
    pub is_forgotten: bool,
    /// Whether its process has ended its permit for good, and its slots wait for the next process.
    pub is_stopped: bool,
}

impl Node {
    /// Creates an active node of weight 1.
    #[must_use]
    pub fn new(id: NodeId, addresses: Addresses) -> Self {
        let participation = Participation::Active;
        Self {
            id,
            protocol: PROTOCOL,
            addresses,
            started_ms: 0,
            weight: 1,
            participation,
            is_forgotten: false,
            is_stopped: false,
        }
    }

    /// Returns whether other nodes can move slots to it.
    #[must_use]
    pub fn takes_slots(&self) -> bool {
        self.participation == Participation::Active && !self.is_stopped
    }

    /// Returns the name of its state: that of its participation, or `stopped`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        if self.is_stopped { "stopped" } else { self.participation.name() }
    }

    /// Encodes the value of the node's key.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = format!("protocol {}\n", self.protocol);
        let Addresses { client, node, memcached, admin } = &self.addresses;
        let addresses =
            [("client", client), ("node", node), ("memcached", memcached), ("admin", admin)];
        for (name, address) in addresses.iter().filter(|(_, address)| !address.is_empty()) {
            let _ = writeln!(text, "{name} {address}");
        }
        let participation = self.participation.name();
        let (started, weight) = (self.started_ms, self.weight);
        let _ = writeln!(text, "started {started}\nweight {weight}\nparticipation {participation}");
        for (name, is_set) in [("forgotten", self.is_forgotten), ("stopped", self.is_stopped)] {
            if is_set {
                let _ = writeln!(text, "{name} yes");
            }
        }
        text
    }

    /// Decodes the value of a node's key. Names that this version does not know are ignored.
    ///
    /// # Errors
    ///
    /// Fails if a line is invalid, or if the node has another version of the protocol.
    pub fn decode(id: NodeId, value: &str) -> Result<Self, InvalidText> {
        let mut node = Self { protocol: 0, ..Self::new(id, Addresses::default()) };
        for (number, line) in (1..).zip(value.lines()) {
            node.set(line).map_err(|error| error.at(format_args!("line {number}")))?;
        }
        if node.protocol != PROTOCOL {
            let found = format!("protocol {}", node.protocol);
            return Err(InvalidText::new(&format!("a line `protocol {PROTOCOL}`"), &found));
        }
        Ok(node)
    }

    /// Sets what one line says.
    fn set(&mut self, line: &str) -> Result<(), InvalidText> {
        let Some((name, value)) = line.split_once(' ') else {
            return Err(InvalidText::new("a name, a space and a value", line));
        };
        match name {
            "protocol" => self.protocol = number(value)?,
            "client" => self.addresses.client = address(value)?,
            "node" => self.addresses.node = address(value)?,
            "memcached" => self.addresses.memcached = address(value)?,
            "admin" => self.addresses.admin = address(value)?,
            "started" => self.started_ms = number(value)?,
            "weight" => self.weight = number::<u32>(value)?.max(1),
            "participation" => {
                self.participation = match value {
                    "active" => Participation::Active,
                    "waiting" => Participation::Waiting,
                    "draining" => Participation::Draining,
                    _ => return Err(InvalidText::new("active, waiting or draining", value)),
                }
            }
            "forgotten" => self.is_forgotten = value == "yes",
            "stopped" => self.is_stopped = value == "yes",
            _ => {}
        }
        Ok(())
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, InvalidText> {
    text.parse().map_err(|_| InvalidText::new("a number", text))
}

/// Returns whether a text is an address that a node can announce: `host:port`.
#[must_use]
pub fn is_address(text: &str) -> bool {
    address(text).is_ok()
}

/// Checks the syntax of an address: a client receives it in replies, so it contains no spaces or
/// control characters.
fn address(text: &str) -> Result<String, InvalidText> {
    let error = || InvalidText::new("host:port", text);
    let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
    let is_printable = host.bytes().all(|byte| byte.is_ascii_graphic());
    let port: u16 = port.parse().map_err(|_| error())?;
    if host.is_empty() || !is_printable || port == 0 {
        return Err(error());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        let addresses = Addresses {
            client: "cache-1.example:6379".into(),
            node: "[::1]:16379".into(),
            ..Addresses::default()
        };
        Node { started_ms: 5, weight: 512, ..Node::new(NodeId::numbered(1), addresses) }
    }

    #[test]
    fn a_node_is_decoded_as_it_was_encoded() {
        for participation in
            [Participation::Active, Participation::Waiting, Participation::Draining]
        {
            let is_forgotten = participation == Participation::Waiting;
            let is_stopped = participation == Participation::Draining;
            let node = Node { participation, is_forgotten, is_stopped, ..node() };
            let value = format!("{}later anything at all\n", node.encode());
            assert_eq!(Node::decode(node.id, &value), Ok(node));
        }
    }

    #[test]
    fn an_error_names_the_line() {
        let id = NodeId::numbered(1);
        for (value, error) in [
            ("", "expected a line `protocol 1`, found \"protocol 0\""),
            ("protocol 2", "expected a line `protocol 1`, found \"protocol 2\""),
            ("protocol 1\nclient", "line 2: expected a name, a space and a value"),
            ("client 1.2.3.4", "line 1: expected host:port, found \"1.2.3.4\""),
            ("client a b:1", "line 1: expected host:port"),
            ("client a\u{7}:1", "line 1: expected host:port"),
            ("client a:0", "line 1: expected host:port"),
            ("weight many", "line 1: expected a number"),
            ("participation no", "line 1: expected active, waiting or draining"),
        ] {
            let found = Node::decode(id, value).expect_err(value).to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
