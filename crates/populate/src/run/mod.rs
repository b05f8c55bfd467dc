//! One run of a job.

mod incremental;
mod observer;
mod preview;
mod previous;
mod publication;
mod report;

pub use observer::{Observer, Progress};
pub use preview::{PreviewedEntry, preview};
pub use report::{Report, SourceReport};

use crate::build::{self, AbsentKeys, Counters, Keep, Kept, READER_MEMORY};
use crate::error::{Error, Result};
use crate::gates::{self, Candidate};
use crate::interruption::Interruption;
use crate::job::{Address, Job};
use crate::sources::{self, Group};
use incremental::Plan;
use nuthatch_snapshot::{OnDuplicate, Snapshot, Summary, Writer, WriterOptions};
use nuthatch_trace_context::{note_error, span};
use previous::Previous;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Minimum memory of the writer.
const MIN_WRITER_MEMORY: usize = 32 << 20;
/// The wait before the second attempt; it doubles with each one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Runs a job once: reads its sources, builds the snapshot, checks its gates and publishes it.
/// Until all gates have let it pass, the last generation stays. It also stays if the manifest of
/// the destination was replaced since the run began: by another run, a publisher or a rollback.
///
/// If a connection is lost, the job runs again from its start, up to the number of attempts of the
/// job. Rows of PostgreSQL that are read in ranges are read again by their range.
///
/// # Errors
///
/// Returns [`Error::Source`], [`Error::Duplicate`], [`Error::Gates`], [`Error::Snapshot`],
/// [`Error::Delivery`], [`Error::Job`], or, after `interrupted` was set, [`Error::Interrupted`] or
/// [`Error::InterruptedPublication`].
pub fn run(
    job: &Job,
    now: SystemTime,
    interrupted: &Arc<AtomicBool>,
    observer: &Arc<dyn Observer>,
) -> Result<Report> {
    let start = Instant::now();
    let interruption = &Interruption(Arc::clone(interrupted));
    let mut wait = FIRST_WAIT;
    for attempt in 1.. {
        let span = span!("populate", "internal", nuthatch.attempt = attempt);
        let ran = span.in_scope(|| run_attempt(job, now, interruption, observer));
        note_error(&span, &ran);
        match ran {
            Ok(report) => return Ok(Report { attempts: attempt, time: start.elapsed(), ..report }),
            Err(error @ Error::InterruptedPublication { .. }) => return Err(error),
            // Whatever failed then is a consequence.
            Err(_) if interruption.is_set() => return Err(Error::Interrupted),
            Err(error) if error.is_transient() && attempt < job.attempts => {
                observer.attempt_failed(attempt, &error, wait);
                pause(wait, interruption)?;
                wait = (wait * 2).min(MAX_WAIT);
            }
            Err(error) => return Err(error),
        }
    }
    unreachable!("the last attempt returns")
}

/// Fails if the output is one of the files that are read: it would replace that file.
fn check_output(job: &Job) -> Result<()> {
    let Ok(output) = std::fs::metadata(&job.output) else { return Ok(()) };
    for source in &job.sources {
        let path = match &source.address {
            Address::Sqlite(path) => path.clone(),
            Address::Files(path) if !path.contains("://") => path.into(),
            _ => continue,
        };
        let is_same = std::fs::metadata(path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (output.dev(), output.ino()));
        if is_same {
            let (output, number) = (job.output.display(), source.number);
            let message = format!("{output}: expected another file than that of source {number}");
            return Err(Error::Job(message));
        }
    }
    Ok(())
}

/// Waits, unless the job is interrupted.
fn pause(wait: Duration, interruption: &Interruption) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < wait {
        if interruption.is_set() {
            return Err(Error::Interrupted);
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    Ok(())
}

fn run_attempt(
    job: &Job,
    now: SystemTime,
    interruption: &Interruption,
    observer: &Arc<dyn Observer>,
) -> Result<Report> {
    check_output(job)?;
    publication::check(job)?;
    let previous = Previous::find(job, interruption)?;
    if let Some(damage) = previous.damage() {
        let effect = if job.is_incremental() { "; this is a full run" } else { "" };
        observer.warning(&format!("the last generation cannot be read: {damage}{effect}"));
    }
    let mut plan = Plan::new(job, previous.snapshot(), now)?;
    let mut groups = sources::open(&job.sources, interruption)?;
    let marks = incremental::marks(job, &mut groups)?;
    if let Some(warning) = marks.warning(job) {
        observer.warning(&warning);
        plan.make_full(now);
    }
    let mut writer = writer(job, &plan, observer)?;
    for (name, value) in &job.snapshot.metadata {
        writer.set_metadata(name, value.as_bytes())?;
    }
    plan.write_metadata(&mut writer, &marks.literals)?;
    let absent = Mutex::new(AbsentKeys::new(&job.output));
    let read = span!("read", "internal").in_scope(|| {
        let groups = (&mut groups[..], &absent);
        read_sources(job, &plan, (groups, &mut writer), (interruption, observer))
    })?;
    if let Some(last) = plan.last_generation() {
        let absent = absent.into_inner().unwrap_or_else(PoisonError::into_inner);
        incremental::merge(last, absent, &mut writer, interruption)?;
    }
    let staged = span!("write", "internal")
        .in_scope(|| writer.stage())
        .map_err(|error| duplicate(job, error))?;
    observer.progress(Progress::Checking);
    let snapshot = Snapshot::open(staged.path())?;
    let candidate = Candidate {
        job,
        snapshot: &snapshot,
        previous: previous.snapshot(),
        damage: previous.damage(),
        kept: &read.kept,
        interruption,
    };
    let reports = span!("gates", "internal").in_scope(|| gates::check(&candidate, &mut groups))?;
    if reports.iter().any(|report| !report.passed) {
        return Err(Error::Gates(reports));
    }
    interruption.check()?;
    drop((snapshot, groups));
    publication::check_serial(job, previous.serial(), interruption)?;
    let summary: Summary = staged.publish()?;
    let generation = publication::publish(job, (now, previous.serial()), (interruption, observer))?;
    Ok(Report {
        output: job.output.clone(),
        is_incremental: plan.last_generation().is_some(),
        summary,
        sources: read.reports,
        gates: reports,
        published: generation,
        attempts: 1,
        time: Duration::ZERO,
    })
}

/// Returns the writer. The memory of the threads that read is a part of the budget.
fn writer(job: &Job, plan: &Plan<'_>, observer: &Arc<dyn Observer>) -> Result<Writer> {
    let options = &job.snapshot;
    let readers = job.sources.iter().map(|source| source.readers).max().unwrap_or(1);
    let memory = options.memory.saturating_sub(readers * READER_MEMORY).max(MIN_WRITER_MEMORY);
    // Rows of an incremental run come before those of the last generation.
    let is_merge = plan.last_generation().is_some();
    let on_duplicate = if is_merge { OnDuplicate::First } else { options.on_duplicate };
    let observer = Arc::clone(observer);
    let mut writer_options = WriterOptions::new()
        .on_duplicate(on_duplicate)
        .compression(options.compression)
        .shards(options.shards)
        .memory(memory)
        .progress(move |progress| observer.progress(Progress::Building(progress)));
    if let Some(threads) = options.threads {
        writer_options = writer_options.threads(threads);
    }
    Ok(writer_options.create(&job.output)?)
}

/// What was read of all sources.
struct ReadSources {
    reports: Vec<SourceReport>,
    /// What was kept of each source.
    kept: Vec<Kept>,
}

fn read_sources(
    job: &Job,
    plan: &Plan<'_>,
    ((groups, absent), writer): ((&mut [Group], &Mutex<AbsentKeys>), &mut Writer),
    (interruption, observer): (&Interruption, &Arc<dyn Observer>),
) -> Result<ReadSources> {
    let is_ordered = job.snapshot.on_duplicate != OnDuplicate::Error;
    let absent = plan.last_generation().map(|_| absent);
    let keep = Keep { sample: job.gates.sample, absent };
    let total_rows = estimated_rows(job, plan, groups);
    let (mut reports, mut kept, mut rows_before, mut bytes_before) = (Vec::new(), Vec::new(), 0, 0);
    for (index, source) in job.sources.iter().enumerate() {
        let start = Instant::now();
        let counters = Counters::default();
        let group = groups.iter_mut().find(|group| group.sources.contains(&index));
        let session = &mut *group.expect("each source is in a group").session;
        let query = plan.query(index, source, session);
        // With several readers, or with ranges, the order of rows would not be that of the source.
        let mut source = source.clone();
        if is_ordered {
            source.readers = 1;
            source.split = None;
        }
        let report = || {
            observer.progress(Progress::Reading {
                rows: rows_before + counters.rows.load(Ordering::Relaxed),
                total_rows,
                bytes: bytes_before + counters.bytes.load(Ordering::Relaxed),
            });
        };
        let appended = build::append(
            (session, &source, query.as_deref()),
            (writer, keep),
            (&counters, interruption),
            report,
        );
        kept.push(appended?);
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        rows_before += load(&counters.rows);
        bytes_before += load(&counters.bytes);
        reports.push(SourceReport {
            source: source.name(),
            rows: load(&counters.rows),
            entries: load(&counters.entries),
            time: start.elapsed(),
        });
    }
    Ok(ReadSources { reports, kept })
}

/// Returns the number of rows that the sources expect; 0 if one does not know it.
fn estimated_rows(job: &Job, plan: &Plan<'_>, groups: &mut [Group]) -> u64 {
    if plan.last_generation().is_some() {
        return 0;
    }
    let mut total = 0;
    for group in groups {
        for index in group.sources.clone() {
            match group.session.estimated_rows(&job.sources[index]) {
                Some(rows) => total += rows,
                None => return 0,
            }
        }
    }
    total
}

/// Returns the error for rows with the same key, with their sources, and with their rows if one
/// thread reads the source in its order.
fn duplicate(job: &Job, error: nuthatch_snapshot::Error) -> Error {
    let nuthatch_snapshot::Error::Duplicate(duplicate) = error else { return error.into() };
    let source = |position: u64| {
        let number = (position >> 48) as usize;
        let Some(source) = job.sources.get(number.wrapping_sub(1)) else { return String::new() };
        let row =
            source.is_read_in_order().then(|| format!(", row {}", position & ((1 << 48) - 1)));
        let row = row.unwrap_or_default();
        format!("source {number} ({}{row})", source.name())
    };
    let (first, second) = (source(duplicate.first), source(duplicate.second));
    let key = String::from_utf8_lossy(&duplicate.key).escape_debug().to_string();
    Error::Duplicate(format!(
        "{second}: expected each key once, found \"{key}\" again, first in {first}; \
         on_duplicate = \"first\" or \"last\" keeps one"
    ))
}
