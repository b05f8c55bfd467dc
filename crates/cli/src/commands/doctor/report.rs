//! The findings as text and as JSON.

use super::finding::{Finding, Status};
use serde_json::json;
use std::fmt::Write as _;

/// The file for which lines are printed.
const SYSCTL_FILE: &str = "/etc/sysctl.d/90-nuthatch.conf";

/// Returns the findings as text: a line for each, what to do below it, and the lines for
/// `/etc/sysctl.d`.
pub(super) fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { name, status, found, advice, .. } in findings {
        let _ = writeln!(text, "{:<8} {name}: {found}", status.name());
        if let Some(advice) = advice {
            let _ = writeln!(text, "         -> {advice}");
        }
    }
    let lines: Vec<_> = findings.iter().filter_map(|finding| finding.sysctl).collect();
    if !lines.is_empty() {
        let _ = writeln!(text, "\n# {SYSCTL_FILE}; then: sysctl --system\n{}", lines.join("\n"));
    }
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let (problems, notes) = (count(Status::Problem), count(Status::Note));
    let counts = [(findings.len(), "check"), (problems, "problem"), (notes, "note")];
    let counts = counts.map(|(count, noun)| number_of(count, noun)).join(", ");
    let _ = writeln!(text, "\n{counts}");
    text
}

/// Returns a number with its noun, such as `1 note` or `2 notes`.
pub(super) fn number_of(count: usize, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}

/// Returns the findings as one JSON object.
pub(super) fn json(findings: &[Finding]) -> String {
    let objects: Vec<_> = findings
        .iter()
        .map(|finding| {
            json!({
                "name": finding.name,
                "status": finding.status.name(),
                "found": finding.found,
                "advice": finding.advice,
                "sysctl": finding.sysctl,
            })
        })
        .collect();
    format!("{}\n", json!({ "findings": objects }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_ends_with_lines_for_sysctl_and_counts() {
        let findings = [
            Finding::ok("kernel", "Linux 6.1"),
            Finding::note("swap", "1 area", "lower it").with_sysctl("vm.swappiness = 1"),
            Finding::problem("open files", "at most 12", "raise the limit"),
        ];
        let expected = "ok       kernel: Linux 6.1\n\
                        note     swap: 1 area\n         -> lower it\n\
                        problem  open files: at most 12\n         -> raise the limit\n\n\
                        # /etc/sysctl.d/90-nuthatch.conf; then: sysctl --system\n\
                        vm.swappiness = 1\n\n3 checks, 1 problem, 1 note\n";
        assert_eq!(text(&findings), expected);
        let value: serde_json::Value = serde_json::from_str(&json(&findings)).expect("JSON");
        assert_eq!(value["findings"][2]["status"], "problem");
        assert_eq!(value["findings"][1]["sysctl"], "vm.swappiness = 1");
        assert_eq!(value["findings"][0]["advice"], serde_json::Value::Null);
    }
}
