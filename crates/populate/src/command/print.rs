//! Output of the command.

use super::Failure;
use nuthatch_populate::{Error, GateReport, PreviewedEntry, Report};
use nuthatch_snapshot::Value;
use nuthatch_units::{bytes, duration, grouped};
use nuthatch_value_text::json_value;
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};

/// Prints entries as JSON lines that "nuthatch build" accepts.
pub(super) fn entries(entries: &[PreviewedEntry]) -> Result<(), Failure> {
    let mut text = Vec::new();
    for entry in entries {
        let key = std::str::from_utf8(&entry.key).map_or(Value::Bytes(&entry.key), Value::String);
        text.extend_from_slice(b"{\"key\":");
        json_value(&key, &mut text);
        text.extend_from_slice(b",\"value\":");
        json_value(&entry.value.as_value(), &mut text);
        text.extend_from_slice(b"}\n");
    }
    print(&text)
}

/// Prints the report of a run or a job that failed.
pub(super) fn failure(error: &Error) -> Result<(), Failure> {
    let gates: Vec<_> = match error {
        Error::Gates(reports) => reports.iter().map(GateReport::json).collect(),
        _ => Vec::new(),
    };
    let report = json!({ "error": error.to_string(), "gates": gates });
    print(format!("{report}\n").as_bytes())
}

/// Prints the report of a run.
pub(super) fn report(report: &Report, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return print(format!("{}\n", report.json()).as_bytes());
    }
    let rows: u64 = report.sources.iter().map(|source| source.rows).sum();
    let mut text = format!(
        "{}: {}, {}, of {}{} in {}",
        report.output.display(),
        counted(report.summary.entries, ("entry", "entries")),
        bytes(report.summary.file_len),
        counted(rows, ("row", "rows")),
        if report.is_incremental { " that changed" } else { "" },
        duration(report.time),
    );
    if !report.gates.is_empty() {
        let gates = counted(report.gates.len() as u64, ("gate", "gates"));
        let _ = write!(text, ", {gates} passed");
    }
    match &report.published {
        Some(published) if published.is_unchanged => {
            let _ = write!(text, ", generation {} has these contents", published.generation);
        }
        Some(published) => {
            let _ = write!(text, ", published as generation {}", published.generation);
        }
        None => {}
    }
    print((text + "\n").as_bytes())
}

/// Returns a number of things, which have these names in the singular and in the plural.
fn counted(number: u64, (one, many): (&str, &str)) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Writes to standard output.
fn print(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::ClosedPipe),
        result => result.map_err(Failure::Output),
    }
}
