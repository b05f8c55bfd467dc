//! The keys of a cluster in etcd: `/nuthatch/NAME/identity`, `/nuthatch/NAME/nodes/ID` and
//! `/nuthatch/NAME/slots/GG`.

use crate::node_id::NodeId;
use crate::text::InvalidText;

/// The keys of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Node(NodeId),
    Group(u8),
}

impl Keys {
    /// Returns the keys of the cluster with this name.
    ///
    /// # Errors
    ///
    /// Fails if the name is empty, has more than 64 characters, or others than letters, digits,
    /// `-`, `_` and `.`.
    pub fn new(name: &str) -> Result<Self, InvalidText> {
        let is_valid =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_valid) {
            let expected = "a name of 1 to 64 letters, digits, `-`, `_` or `.`";
            return Err(InvalidText::new(expected, name));
        }
        Ok(Self { prefix: format!("/nuthatch/{name}/") })
    }

    /// Returns the keys of a simulated cluster.
    pub(crate) fn of_simulation() -> Self {
        Self { prefix: "/nuthatch/simulation/".to_owned() }
    }

    /// Returns the keys without the prefix of a cluster.
    pub(crate) fn relative() -> Self {
        Self { prefix: String::new() }
    }

    /// Returns the prefix of all keys.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the key of a node. It is bound to the lease of the node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> String {
        format!("{}nodes/{id}", self.prefix)
    }

    /// Returns the key of the identity of the data.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}identity", self.prefix)
    }

    /// Returns the key of a group of slots.
    #[must_use]
    pub fn group(&self, index: u8) -> String {
        format!("{}slots/{index:02x}", self.prefix)
    }

    /// Returns what a key is for; `None` for a key of a later version.
    pub(crate) fn subject(&self, key: &str) -> Option<Subject> {
        let rest = key.strip_prefix(&self.prefix)?;
        if let Some(id) = rest.strip_prefix("nodes/") {
            return id.parse().ok().map(Subject::Node);
        }
        let index = u8::from_str_radix(rest.strip_prefix("slots/")?, 16).ok()?;
        (self.group(index) == key).then_some(Subject::Group(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_subject() {
        let keys = Keys::new("eu-1").expect("a name");
        let id = NodeId::numbered(7);
        assert_eq!(keys.subject(&keys.node(id)), Some(Subject::Node(id)));
        for index in [0, 9, 255] {
            assert_eq!(keys.subject(&keys.group(index)), Some(Subject::Group(index)));
        }
        assert_eq!(keys.group(255), "/nuthatch/eu-1/slots/ff");
        for other in ["/nuthatch/eu-1/slots/1", "/nuthatch/eu-1/slots/+1", "/nuthatch/eu/slots/01"]
        {
            assert_eq!(keys.subject(other), None, "{other}");
        }
    }

    #[test]
    fn names_of_clusters_are_checked() {
        for name in ["", "a/b", "a b", "ü", &"x".repeat(65)] {
            let error = Keys::new(name).expect_err(name).to_string();
            assert!(error.starts_with("expected a name of 1 to 64 letters"), "{error}");
        }
    }
}
