//! Incremental runs: changed rows are merged with the last generation.
//!
//! The metadata of a snapshot has, for each source, the highest value of its column `since`, the
//! time of the last full build, and a fingerprint of the sources. A run is incremental if the last
//! generation has all of these, the fingerprint is that of the job, and the full build is recent.

use crate::build::{AbsentKeys, FoundAbsent};
use crate::error::{Error, Result};
use crate::gates::{FirstValue, first_value};
use crate::interruption::Interruption;
use crate::job::{Job, Source};
use crate::sources::{Group, Session};
use nuthatch_rows::Literal;
use nuthatch_snapshot::{Scratch, Snapshot, Writer};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SOURCES: &str = "populate.sources";
const FULL: &str = "populate.full";
const SINCE: &str = "populate.since.";

/// How a run reads its sources.
pub(super) struct Plan<'a> {
    last: Option<&'a Snapshot>,
    /// The marks of the last run, for an incremental one.
    marks: Vec<Literal>,
    /// The metadata of incremental jobs.
    state: Option<State>,
}

struct State {
    fingerprint: String,
    full: u64,
}

impl<'a> Plan<'a> {
    /// Returns the plan of a run: incremental if the last generation permits it.
    pub(super) fn new(job: &Job, last: Option<&'a Snapshot>, now: SystemTime) -> Result<Self> {
        if !job.is_incremental() {
            return Ok(Self { last: None, marks: Vec::new(), state: None });
        }
        let fingerprint = fingerprint(&job.sources);
        let now = seconds(now);
        if let Some(last) = last
            && let Some((full, marks)) = last_marks(job, last, &fingerprint)?
            // A clock that was ahead may have written a time in the future.
            && now.checked_sub(full).is_some_and(|age| age < job.full_every.as_secs())
        {
            return Ok(Self { last: Some(last), marks, state: Some(State { fingerprint, full }) });
        }
        Ok(Self { last: None, marks: Vec::new(), state: Some(State { fingerprint, full: now }) })
    }

    /// Makes an incremental run a full one.
    pub(super) fn make_full(&mut self, now: SystemTime) {
        self.last = None;
        self.marks.clear();
        if let Some(state) = &mut self.state {
            state.full = seconds(now);
        }
    }

    /// Returns the generation that changed rows are merged with; `None` for a full build.
    pub(super) fn last_generation(&self) -> Option<&'a Snapshot> {
        self.last
    }

    /// Returns the query for the changed rows of a source; `None` for all rows.
    pub(super) fn query(
        &self,
        index: usize,
        source: &Source,
        session: &dyn Session,
    ) -> Option<String> {
        let (mark, dialect) = (self.marks.get(index)?, session.dialect()?);
        let (query, column) = (source.query.as_deref()?, source.since.as_deref()?);
        Some(dialect.query_since(query, column, mark))
    }

    /// Writes the metadata that the next run reads.
    pub(super) fn write_metadata(
        &self,
        writer: &mut Writer,
        marks: &[Option<Literal>],
    ) -> Result<()> {
        let Some(state) = &self.state else { return Ok(()) };
        writer.set_metadata(SOURCES, state.fingerprint.as_bytes())?;
        writer.set_metadata(FULL, state.full.to_string().as_bytes())?;
        for (index, mark) in marks.iter().enumerate() {
            // A source that is empty now can have had rows before.
            let mark = mark.as_ref().or(self.marks.get(index));
            let text = match mark {
                None => continue,
                Some(Literal::Int(int)) => format!("int:{int}"),
                Some(Literal::Float(float)) => format!("float:{float}"),
                Some(Literal::Text(text)) => format!("text:{text}"),
            };
            writer.set_metadata(&format!("{SINCE}{}", index + 1), text.as_bytes())?;
        }
        Ok(())
    }
}

/// Returns the time of the last full build and the marks of all sources; `None` if the snapshot is
/// not of this job, or a source has no mark.
fn last_marks(
    job: &Job,
    last: &Snapshot,
    fingerprint: &str,
) -> Result<Option<(u64, Vec<Literal>)>> {
    let metadata = last.metadata()?;
    let text = |name: &str| metadata.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok());
    if text(SOURCES) != Some(fingerprint) {
        return Ok(None);
    }
    let Some(full) = text(FULL).and_then(|full| full.parse().ok()) else { return Ok(None) };
    let mut marks = Vec::new();
    for number in 1..=job.sources.len() {
        let mark = text(&format!("{SINCE}{number}")).and_then(|text| text.split_once(':'));
        let mark = match mark {
            Some(("int", int)) => match int.parse() {
                Ok(int) => Literal::Int(int),
                Err(_) => return Ok(None),
            },
            Some(("float", float)) if float.parse::<f64>().is_ok_and(f64::is_finite) => {
                Literal::Float(float.to_owned())
            }
            Some(("text", text)) => Literal::Text(text.to_owned()),
            _ => return Ok(None),
        };
        if not_finite(&mark).is_some() {
            return Ok(None);
        }
        marks.push(mark);
    }
    Ok(Some((full, marks)))
}

/// The highest values of the columns `since`.
pub(super) struct Marks {
    /// Those of each source; `None` for a source without rows, or without a finite one.
    pub(super) literals: Vec<Option<Literal>>,
    /// The source whose highest value is not finite, by its index, and that value.
    not_finite: Option<(usize, f64)>,
}

impl Marks {
    /// Returns the warning that the run must be a full one: rows that change later have no higher
    /// value than one that is not finite.
    pub(super) fn warning(&self, job: &Job) -> Option<String> {
        let (index, found) = self.not_finite?;
        let source = &job.sources[index];
        let column = source.since.as_deref().unwrap_or_default();
        Some(format!(
            "{}: since: expected a finite number or time as the highest value of \"{column}\", \
             found {found}; this is a full run",
            source.name()
        ))
    }
}

/// Returns the time in seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// Returns the highest value of the column `since` of each source, in the snapshot of the database
/// that is read.
pub(super) fn marks(job: &Job, groups: &mut [Group]) -> Result<Marks> {
    let mut marks = Marks { literals: vec![None; job.sources.len()], not_finite: None };
    for group in groups {
        for index in group.sources.clone() {
            let source = &job.sources[index];
            let (Some(column), Some(query)) = (&source.since, &source.query) else { continue };
            let Some(dialect) = group.session.dialect() else { continue };
            let max = dialect.query_of_max(query, column);
            let highest = first_value(&mut *group.session, source, &max);
            match highest.map_err(|error| since_fault(column, error))? {
                FirstValue::Null => {}
                FirstValue::Literal(literal) => match not_finite(&literal) {
                    Some(found) => marks.not_finite = Some((index, found)),
                    None => marks.literals[index] = Some(literal),
                },
                FirstValue::NotFinite(found) => marks.not_finite = Some((index, found)),
            }
        }
    }
    Ok(marks)
}

/// Returns the error of the query for the highest value of a column.
fn since_fault(column: &str, error: Error) -> Error {
    match error {
        Error::Source { source, message, is_transient: false } => Error::source(
            &source,
            format!("since: the highest value of \"{column}\" cannot be read: {message}"),
        ),
        other => other,
    }
}

/// Returns the number for a text that stands for the highest time or number of PostgreSQL, which is
/// not finite.
fn not_finite(literal: &Literal) -> Option<f64> {
    let Literal::Text(text) = literal else { return None };
    if text.eq_ignore_ascii_case("infinity") {
        return Some(f64::INFINITY);
    }
    text.eq_ignore_ascii_case("nan").then_some(f64::NAN)
}

/// Appends the entries of the last generation, except those whose value became NULL. The writer
/// keeps the rows that were added before.
pub(super) fn merge(
    last: &Snapshot,
    absent: AbsentKeys,
    writer: &mut Writer,
    interruption: &Interruption,
) -> Result<()> {
    let absent: FoundAbsent = absent.finish()?;
    let mut scratch = Scratch::new();
    for entry in last.iter_verified()? {
        interruption.check()?;
        let entry = entry?;
        if absent.contains(entry.key)? {
            continue;
        }
        writer.insert(entry.key, entry.value.decompress(&mut scratch)?)?;
    }
    last.check_readable().map_err(Error::from)
}

/// Returns a text that differs if sources read or map other rows.
fn fingerprint(sources: &[Source]) -> String {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        let Source { address, query, entries, since, .. } = source;
        (address.identity(), query, since, format!("{entries:?}")).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}
