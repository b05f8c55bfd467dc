//! The methods of the service, and the rights that they need.

use crate::server::tokens::Right;

/// The methods of the service, and the right that a token needs for each. `Txn` checks the right
/// to write itself, before a commit.
const METHODS: &[(&str, Right)] = &[
    ("Get", Right::Read),
    ("GetMany", Right::Read),
    ("Put", Right::Write),
    ("PutIf", Right::Write),
    ("Delete", Right::Write),
    ("DeleteRange", Right::Write),
    ("Scan", Right::Read),
    ("Count", Right::Read),
    ("Batch", Right::Write),
    ("Watch", Right::Read),
    ("Txn", Right::Read),
    ("Stat", Right::Read),
    ("Tables", Right::Read),
    ("CreateTable", Right::Write),
    ("Backup", Right::Read),
];

/// The path of the service.
const SERVICE: &str = "/nuthatch.store.v1.Store/";

/// A method of the service; `None` inside for methods of other services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method(Option<usize>);

impl Method {
    /// Returns the method at the path of a request.
    pub(crate) fn of(path: &str) -> Self {
        let name = path.strip_prefix(SERVICE);
        Self(name.and_then(|name| METHODS.iter().position(|(method, _)| *method == name)))
    }

    /// Returns the right that a token needs; `None` for health and reflection, which need no token.
    pub(crate) fn right(self) -> Option<Right> {
        self.0.map(|method| METHODS[method].1)
    }

    /// Returns the position of the method among [`names`](Self::names).
    pub(crate) fn index(self) -> Option<usize> {
        self.0
    }

    /// Returns the names of all methods of the service.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        METHODS.iter().map(|(name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::proto::store_server::SERVICE_NAME;

    #[test]
    fn every_method_of_the_definition_is_listed_and_needs_a_right() {
        let definition = include_str!("../../proto/store.proto");
        let calls = definition.lines().filter_map(|line| line.trim().strip_prefix("rpc "));
        let calls: Vec<_> = calls.filter_map(|line| Some(line.split_once('(')?.0)).collect();
        assert_eq!(calls, METHODS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        assert_eq!(format!("/{SERVICE_NAME}/"), SERVICE);
        for call in calls {
            assert!(Method::of(&format!("{SERVICE}{call}")).right().is_some(), "{call}");
        }
        assert_eq!(Method::of("/grpc.health.v1.Health/Check").right(), None);
    }
}
