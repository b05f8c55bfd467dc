//! Rules for the source code of the repository, as functions over text.
//!
//! Each module contains a group of rules. A rule is a function from a [`File`] or a [`Tree`] to the
//! violations that it finds, and is named after them. Its unit tests include a violation. The test
//! `tests/tidy.rs` lists the exceptions from the rules and their reasons.

pub mod circles;
pub mod exports;
pub mod imports;
pub mod language;
pub mod leftovers;
pub mod links;
mod mask;
pub mod names;
pub mod readmes;
pub mod size;
mod tree;
pub mod unsafety;

use std::fmt;

pub use tree::{File, Tree};

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path relative to the root of the repository.
    pub file: String,
    /// The line number, counted from one.
    pub line: usize,
    /// The item of the file that violates the rule, such as a function. Empty for the file itself.
    pub item: String,
    /// The requirement of the rule.
    pub expected: String,
    /// The text that violates the rule.
    pub found: String,
}

impl Finding {
    fn new(
        file: &File,
        line: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let file = file.path.clone();
        Self { file, line, item: String::new(), expected: expected.into(), found: found.into() }
    }

    fn about(self, item: &str) -> Self {
        Self { item: item.to_owned(), ..self }
    }

    /// Returns the place as in [`Exception::place`]: the file, or `file::item`.
    fn place(&self) -> String {
        if self.item.is_empty() {
            self.file.clone()
        } else {
            format!("{}::{}", self.file, self.item)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected {}, found {}", self.file, self.line, self.expected, self.found)
    }
}

/// An exception from a rule.
#[derive(Debug)]
pub struct Exception {
    /// The place of the exception: a file, or `file::function`.
    pub place: &'static str,
    /// The reason for the exception.
    pub reason: &'static str,
}

/// Returns the findings that are not exceptions, and a finding for each unused exception. An unused
/// exception would hide a later violation at the same place.
pub fn except(findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<Finding> {
    let stale: Vec<Finding> = exceptions
        .iter()
        .filter(|e| !findings.iter().any(|f| f.place() == e.place))
        .map(|e| Finding {
            file: e.place.to_owned(),
            line: 1,
            item: String::new(),
            expected: "an exception that is still needed".to_owned(),
            found: format!("nothing to excuse (listed because: {})", e.reason),
        })
        .collect();
    let listed = |f: &Finding| exceptions.iter().any(|e| f.place() == e.place);
    findings.into_iter().filter(|f| !listed(f)).chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, item: &str) -> Finding {
        Finding::new(&File::text(path, ""), 7, "less", "more").about(item)
    }

    #[test]
    fn a_finding_names_place_expectation_and_fact() {
        assert_eq!(finding("a.rs", "").to_string(), "a.rs:7: expected less, found more");
    }

    #[test]
    fn an_exception_excuses_its_place_alone() {
        let excused = [Exception { place: "a.rs::long", reason: "a table" }];
        let left = except(vec![finding("a.rs", "long"), finding("a.rs", "other")], &excused);
        assert_eq!(left, [finding("a.rs", "other")]);
    }

    #[test]
    fn an_exception_that_excuses_nothing_is_found() {
        let left = except(Vec::new(), &[Exception { place: "gone.rs", reason: "once large" }]);
        assert_eq!(left.len(), 1);
        assert!(left[0].to_string().contains("gone.rs"), "{}", left[0]);
    }
}
