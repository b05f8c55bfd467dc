//! The outcome of a gate.

use std::fmt;

/// The outcome of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateReport {
    /// The name of the gate, as in a job.
    pub gate: &'static str,
    /// What it expects.
    pub expected: String,
    /// What it found.
    pub found: String,
    /// Whether it let the snapshot pass.
    pub passed: bool,
}

impl GateReport {
    /// Returns the outcome as a JSON object.
    pub fn json(&self) -> serde_json::Value {
        let Self { gate, expected, found, passed } = self;
        serde_json::json!({
            "gate": gate, "expected": expected, "found": found, "passed": passed,
        })
    }
}

impl fmt::Display for GateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.gate, self.expected, self.found)
    }
}
