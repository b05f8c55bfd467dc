//! House rules as functions over text, so that a test can hold the repository to them.
//!
//! Each file below is one family of rules. A rule takes a [`File`] or a [`Tree`] and returns what
//! it found wrong, and is named after that; its unit tests show it a bad example that must not
//! pass. Which exceptions stand, and why, is the business of `tests/tidy.rs`, not of the rules.

pub mod circles;
pub mod imports;
pub mod language;
pub mod leftovers;
pub mod links;
mod mask;
pub mod names;
pub mod size;
mod tree;
pub mod unsafety;

use std::fmt;

pub use tree::{File, Tree};

/// One place where a rule does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path from the root of the repository.
    pub file: String,
    /// Counted from one.
    pub line: usize,
    /// What inside the file the finding is about, such as a function; empty for the file itself.
    pub item: String,
    /// What the rule asks for.
    pub expected: String,
    /// What stands there.
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

    /// What an [`Exception`] names: the file, or `file::item`.
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

/// A place that is excused from a rule.
#[derive(Debug)]
pub struct Exception {
    /// A file, or `file::function`.
    pub place: &'static str,
    /// Why the rule does not hold there.
    pub reason: &'static str,
}

/// What remains of `findings` once the excused ones are out, plus each exception that excuses
/// nothing: a table of exceptions that outlives its causes would hide the next one.
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
