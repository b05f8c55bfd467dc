//! Output of the command.

use super::Failure;
use nuthatch_populate::{PreviewedEntry, Report};
use nuthatch_snapshot::Value;
use nuthatch_units::{bytes, duration, grouped};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};

/// Prints entries as JSON lines that "nuthatch build" accepts.
pub(super) fn entries(entries: &[PreviewedEntry]) -> Result<(), Failure> {
    let mut text = String::new();
    for entry in entries {
        let key = match std::str::from_utf8(&entry.key) {
            Ok(key) => json!(key),
            Err(_) => bytes_json(&entry.key),
        };
        let value = value_json(entry.value.as_value());
        let _ = writeln!(text, "{{\"key\":{key},\"value\":{value}}}");
    }
    print(&text)
}

fn value_json(value: Value<'_>) -> serde_json::Value {
    let float = |float: f64| match serde_json::Number::from_f64(float) {
        Some(number) => serde_json::Value::Number(number),
        None if float.is_nan() => json!({ "$f64": "NaN" }),
        None if float > 0.0 => json!({ "$f64": "Infinity" }),
        None => json!({ "$f64": "-Infinity" }),
    };
    match value {
        Value::Bytes(bytes) => bytes_json(bytes),
        Value::String(text) => json!(text),
        Value::Bool(truth) => json!(truth),
        Value::I64(int) => json!(int),
        Value::F64(number) => float(number),
        Value::I64List(list) => json!(list),
        Value::F64List(list) => list.iter().map(|number| float(*number)).collect(),
        Value::F32List(list) => json!({ "$f32": list }),
        Value::StringList(list) => list.iter().collect(),
        _ => json!([]),
    }
}

fn bytes_json(bytes: &[u8]) -> serde_json::Value {
    use base64::Engine as _;
    json!({ "$bytes": base64::engine::general_purpose::STANDARD.encode(bytes) })
}

/// Prints the report of a run.
pub(super) fn report(report: &Report, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return print(&format!("{}\n", report.json()));
    }
    let rows: u64 = report.sources.iter().map(|source| source.rows).sum();
    let mut text = format!(
        "{}: {} entries, {}, of {} rows{} in {}",
        report.output.display(),
        grouped(report.summary.entries),
        bytes(report.summary.file_len),
        grouped(rows),
        if report.is_incremental { " that changed" } else { "" },
        duration(report.time),
    );
    if !report.gates.is_empty() {
        let _ = write!(text, ", {} gates passed", report.gates.len());
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
    print(&(text + "\n"))
}

/// Writes to standard output. A reader that closes it needs no more of it.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}
