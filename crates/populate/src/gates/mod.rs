//! Gates: what must hold before a snapshot replaces the last generation.

mod changes;
mod first_value;
mod sample;

pub(crate) use first_value::{FirstValue, first_value};

use crate::build::Kept;
use crate::error::Result;
use crate::gate_report::GateReport;
use crate::interruption::Interruption;
use crate::job::{Job, Ratio};
use crate::sources::Group;
use nuthatch_rows::Literal;
use nuthatch_snapshot::Snapshot;
use nuthatch_units::grouped;

/// A snapshot that gates check.
pub(crate) struct Candidate<'a> {
    pub(crate) job: &'a Job,
    pub(crate) snapshot: &'a Snapshot,
    /// The last generation, if there is one.
    pub(crate) previous: Option<&'a Snapshot>,
    /// Why the last generation cannot be read, if it cannot.
    pub(crate) damage: Option<&'a str>,
    /// What was kept of each source.
    pub(crate) kept: &'a [Kept],
    pub(crate) interruption: &'a Interruption,
}

/// Checks a snapshot by all gates of its job. The sources are still in the same snapshot of their
/// database.
///
/// # Errors
///
/// Returns [`crate::Error::Source`] if a query of a gate fails, and [`crate::Error::Snapshot`] if a
/// snapshot cannot be read.
pub(crate) fn check(candidate: &Candidate<'_>, groups: &mut [Group]) -> Result<Vec<GateReport>> {
    let mut reports = Vec::new();
    check_counts(candidate, &mut reports);
    check_changes(candidate, &mut reports)?;
    for key in &candidate.job.gates.required_keys {
        let passed = candidate.snapshot.contains(key.as_bytes())?;
        let found = if passed { "the key" } else { "no such key" }.to_owned();
        let expected = format!("\"{key}\"");
        reports.push(GateReport { gate: "required_keys", expected, found, passed });
    }
    for query in &candidate.job.gates.queries {
        let source = &candidate.job.sources[usize::from(query.source) - 1];
        let session = session_of(groups, usize::from(query.source) - 1);
        let found = first_value(&mut *session.session, source, &query.query)?;
        let passed = matches!(&found, FirstValue::Literal(literal) if is_true(literal));
        let found = match found {
            FirstValue::Literal(Literal::Int(int)) => int.to_string(),
            FirstValue::Literal(Literal::Float(float)) => float,
            FirstValue::Literal(Literal::Text(text)) => format!("\"{text}\""),
            FirstValue::NotFinite(float) => float.to_string(),
            FirstValue::Null => "no value".to_owned(),
        };
        let expected = format!("true from {}", query.query);
        reports.push(GateReport { gate: "query", expected, found, passed });
    }
    if candidate.job.gates.sample > 0 {
        for (index, kept) in candidate.kept.iter().enumerate() {
            let session = session_of(groups, index);
            let source = &candidate.job.sources[index];
            let rows = (&*kept.sample, candidate.job.gates.sample);
            let checked = (candidate.snapshot, candidate.interruption);
            let report = sample::check(&mut *session.session, source, checked, rows)?;
            reports.push(report);
        }
    }
    Ok(reports)
}

/// Returns whether a value is true, or a number other than 0. Some databases return both as text.
fn is_true(value: &Literal) -> bool {
    match value {
        Literal::Int(int) => *int != 0,
        Literal::Float(text) | Literal::Text(text) => {
            matches!(text.as_str(), "true" | "t")
                || text.parse::<f64>().is_ok_and(|number| number != 0.0 && number.is_finite())
        }
    }
}

/// Returns the group of a source.
fn session_of(groups: &mut [Group], source: usize) -> &mut Group {
    let found = groups.iter_mut().find(|group| group.sources.contains(&source));
    found.expect("each source is in a group")
}

fn check_counts(candidate: &Candidate<'_>, reports: &mut Vec<GateReport>) {
    let entries = candidate.snapshot.len();
    if let Some(min) = candidate.job.gates.min_entries {
        reports.push(GateReport {
            gate: "min_entries",
            expected: format!("at least {}", grouped(min)),
            found: grouped(entries),
            passed: entries >= min,
        });
    }
}

fn check_changes(candidate: &Candidate<'_>, reports: &mut Vec<GateReport>) -> Result<()> {
    let gates = &candidate.job.gates;
    let mut add = |gate: &'static str, max: Option<Ratio>, measured: Option<(Ratio, String)>| {
        let Some(max) = max else { return };
        let expected = format!("at most {max}");
        let (passed, found) = match (measured, candidate.damage) {
            (Some((ratio, found)), _) => (ratio <= max, format!("{ratio}: {found}")),
            (None, None) => (true, "no last generation".to_owned()),
            (None, Some(damage)) => {
                let advice = "run the job with --accept-change to publish without this gate";
                (false, format!("a last generation that cannot be read: {damage}; {advice}"))
            }
        };
        reports.push(GateReport { gate, expected, found, passed });
    };
    let new = candidate.snapshot;
    let counts = |old: u64, new: u64, unit: &str| {
        let text = format!("{} {unit} before, {} now", grouped(old), grouped(new));
        (Ratio::of_change(old, new), text)
    };
    let entries = candidate.previous.map(|old| counts(old.len(), new.len(), "entries"));
    add("max_entry_change", gates.max_entry_change, entries);
    let bytes =
        candidate.previous.map(|old| counts(old.stats().file_len, new.stats().file_len, "bytes"));
    add("max_byte_change", gates.max_byte_change, bytes);
    if gates.max_value_change.is_some() {
        let changes = candidate
            .previous
            .map(|old| changes::count(old, new, candidate.interruption))
            .transpose()?;
        let measured = changes.zip(candidate.previous).map(|(changes, old)| {
            let all = changes.removed + changes.added + changes.changed;
            let ratio = if old.is_empty() {
                Ratio::of_change(0, all)
            } else {
                Ratio(all as f64 / old.len() as f64)
            };
            let (other, added) = (grouped(changes.changed), grouped(changes.added));
            let removed = grouped(changes.removed);
            (ratio, format!("{other} changed, {added} added, {removed} removed"))
        });
        add("max_value_change", gates.max_value_change, measured);
    }
    Ok(())
}
