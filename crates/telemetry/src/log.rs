//! The log on standard error. Threads that log never wait for its reader.

use crate::Error;
use crate::monitored::Monitored;
use crate::otlp::Otlp;
use nuthatch_listen::{MetricsFormat, MetricsSource, MetricsText, write_process};
use nuthatch_terminal::print_message;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;
use tracing::{Dispatch, Metadata};
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// Maximum number of lines that wait to be written.
const MAX_QUEUED_LINES: usize = 1024;

/// The maximum time to write the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Set if [`warn`] logs records.
static WARNINGS_ARE_RECORDS: AtomicBool = AtomicBool::new(false);

/// Reports a warning about settings or files. It is a record of the log if the log has JSON lines
/// or the server runs already, and otherwise a plain line on standard error.
pub fn warn(message: impl Display) {
    if WARNINGS_ARE_RECORDS.load(Ordering::Relaxed) {
        tracing::warn!(target: "nuthatch::server", "{message}");
    } else {
        print_message(format_args!("warning: {message}"));
    }
}

/// Records that the server has started: from now on, each warning is a record of the log.
pub fn server_started() {
    WARNINGS_ARE_RECORDS.store(true, Ordering::Relaxed);
}

/// What is logged, and where.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions<'a> {
    /// The filter, as [`check_filter`] accepts it.
    pub filter: &'a str,
    /// The format of lines on standard error.
    pub format: Format,
    /// The setting `otlp`: auto, off, or the URL of a collector.
    pub otlp: &'a str,
    /// The name of the service for OpenTelemetry, unless the environment has one.
    pub service: &'a str,
}

/// Starts the log, and the exporter of OpenTelemetry if it has an address. Dropping the returned
/// value ends both.
///
/// # Errors
///
/// Returns [`Error::Setting`] for an invalid setting or variable, and [`Error::System`] if a thread
/// cannot be started or there is a log already.
pub fn start(options: LogOptions<'_>) -> Result<Logs, Error> {
    let filter = parse(options.filter).map_err(Error::Setting)?;
    let otlp = Otlp::new(options.otlp, options.service)?;
    let system = |error: io::Error| Error::System(error.to_string());
    let (mut logs, lines) = Logs::to(io::stderr(), options.format).map_err(system)?;
    let layer = fmt::layer().with_ansi(false).log_internal_errors(false).with_writer(lines);
    let mut layers = vec![match options.format {
        Format::Text => layer.boxed(),
        Format::Json => layer.json().flatten_event(true).boxed(),
    }];
    layers.extend(otlp.as_ref().map(Otlp::logs));
    let (filter, handle) = reload::Layer::new(filter);
    logs.filter = LogFilter(Some(handle));
    // Spans belong to traces: they are in no line. The macro `enabled!` asks with metadata that are
    // neither of a span nor of an event, and must get the answer for events.
    let no_spans = filter_fn(|metadata: &Metadata<'_>| !metadata.is_span());
    let filter = filter.and(no_spans.with_max_level_hint(LevelFilter::TRACE));
    let mut layers = vec![layers.with_filter(filter).boxed()];
    layers.extend(otlp.as_ref().map(Otlp::spans));
    let dispatch = Dispatch::new(Registry::default().with(layers));
    tracing::dispatcher::set_global_default(dispatch.clone())
        .map_err(|error| Error::System(error.to_string()))?;
    WARNINGS_ARE_RECORDS.store(options.format == Format::Json, Ordering::Relaxed);
    if let Some(mut otlp) = otlp {
        otlp.warnings().iter().for_each(warn);
        otlp.start(&dispatch).map_err(system)?;
        logs.otlp = Some(otlp);
    }
    Otlp::warn_if_unused(options.otlp);
    Ok(logs)
}

/// Checks a filter.
///
/// # Errors
///
/// Returns the problem.
pub fn check_filter(filter: &str) -> Result<(), String> {
    parse(filter).map(drop)
}

/// Parses a filter such as `info` or `warn,nuthatch::users=off`. The level of other targets is
/// `warn`.
fn parse(text: &str) -> Result<Targets, String> {
    let (mut filter, mut default) = (Targets::new(), LevelFilter::WARN);
    for part in text.split(',').map(str::trim) {
        let (target, level) = match part.split_once('=') {
            Some((target, level)) => (Some(target), level),
            None => (None, part),
        };
        let levels = "a level: off, error, warn, info, debug or trace";
        let found = level_named(level);
        let level = found.ok_or_else(|| format!("expected {levels}, found `{part}`"))?;
        match target {
            Some(target) => filter = filter.with_target(target, level),
            None => default = level,
        }
    }
    Ok(filter.with_default(default))
}

/// Parses the name of a level. Numbers and the empty text, which `LevelFilter` accepts, are
/// refused.
fn level_named(name: &str) -> Option<LevelFilter> {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    name.parse().ok().filter(|_| is_name)
}

/// A message to the thread that writes.
enum Message {
    Line(Vec<u8>),
    End,
}

/// The filter of the log, which can be replaced.
#[derive(Clone, Debug)]
pub struct LogFilter(Option<reload::Handle<Targets, Registry>>);

impl LogFilter {
    /// Replaces the filter. An invalid filter (see [`check_filter`]) changes nothing.
    pub fn set(&self, filter: &str) {
        if let (Some(handle), Ok(filter)) = (&self.0, parse(filter)) {
            // This fails only after the log has ended.
            let _ = handle.reload(filter);
        }
    }
}

/// The log. Dropping it exports what is queued for OpenTelemetry, if the collector accepts it in
/// time, and then writes the lines that were logged before, if their reader reads them in time.
pub struct Logs {
    sender: SyncSender<Message>,
    filter: LogFilter,
    otlp: Option<Otlp>,
    /// Closed when the thread has ended.
    done: Receiver<()>,
}

/// Passes lines to the thread that writes.
struct LineWriter {
    sender: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl Logs {
    fn to(mut out: impl Write + Send + 'static, format: Format) -> io::Result<(Self, LineWriter)> {
        let (sender, messages) = sync_channel(MAX_QUEUED_LINES);
        let (is_done, done) = sync_channel(0);
        let dropped = Arc::new(AtomicU64::new(0));
        let lines = LineWriter { sender: sender.clone(), dropped: Arc::clone(&dropped) };
        thread::Builder::new().name("nuthatch-logs".to_owned()).spawn(move || {
            let _is_done: SyncSender<()> = is_done;
            write_all(&messages, &dropped, format, &mut out);
        })?;
        Ok((Self { sender, filter: LogFilter(None), otlp: None, done }, lines))
    }

    /// Returns a handle that replaces the filter.
    pub fn filter(&self) -> LogFilter {
        self.filter.clone()
    }

    /// Returns a function that writes the counters of the exporter in the Prometheus text format.
    /// `None` if nothing is exported.
    pub fn exporter_metrics(&self) -> Option<Box<dyn Fn() -> String + Send + Sync>> {
        self.otlp.as_ref().map(Otlp::exposition)
    }

    /// Exports the metrics of a source from now on, if there is an exporter.
    pub fn export_metrics(&self, source: Arc<dyn MetricsSource>) {
        if let Some(otlp) = &self.otlp {
            otlp.export_metrics(source);
        }
    }

    /// Exports the metrics of a source, if there is an exporter. Returns the source with the
    /// counters of the process, of `other` (in the Prometheus text format) and of the exporter,
    /// for the admin endpoint.
    pub fn monitor<S: MetricsSource>(
        &self,
        source: S,
        other: Box<dyn Fn() -> String + Send + Sync>,
    ) -> Arc<Monitored<S>> {
        let mut others = vec![Box::new(process_text), other];
        others.extend(self.exporter_metrics());
        let source = Arc::new(Monitored { source, others });
        self.export_metrics(Arc::<Monitored<S>>::clone(&source));
        source
    }
}

fn process_text() -> String {
    let mut text = MetricsText::new(MetricsFormat::Prometheus);
    write_process(&mut text);
    text.finish()
}

/// Writes lines until the log ends. Errors are ignored.
fn write_all(
    messages: &Receiver<Message>,
    dropped: &AtomicU64,
    format: Format,
    out: &mut impl Write,
) {
    while let Ok(Message::Line(line)) = messages.recv() {
        let _ = out.write_all(&line);
        let dropped = dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let what = "lines were dropped: the reader of standard error was too slow";
            let _ = match format {
                Format::Text => writeln!(out, "WARN nuthatch::logs: {what} dropped={dropped}"),
                Format::Json => writeln!(
                    out,
                    "{{\"level\":\"WARN\",\"message\":\"{what}\",\"dropped\":{dropped},\
                     \"target\":\"nuthatch::logs\"}}"
                ),
            };
        }
    }
    let _ = out.flush();
}

impl Drop for Logs {
    fn drop(&mut self) {
        if let Some(otlp) = self.otlp.take() {
            otlp.stop();
        }
        // A full queue means that the reader has stopped reading: the lines are dropped.
        if self.sender.try_send(Message::End).is_ok() {
            let _ = self.done.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

impl<'a> MakeWriter<'a> for LineWriter {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// The subscriber writes each line with one call.
impl Write for &LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let sent = self.sender.try_send(Message::Line(line.to_vec()));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tracing::Level;

    #[test]
    fn filters_are_a_level_or_levels_by_target() {
        let logs = |filter: &str, target, level| {
            parse(filter).expect("a filter").would_enable(target, &level)
        };
        assert!(logs("info", "nuthatch::users", Level::INFO));
        assert!(!logs("info", "nuthatch::users", Level::DEBUG));
        assert!(!logs("off", "nuthatch::users", Level::ERROR));
        let filter = "error, nuthatch::users=debug,nuthatch=OFF";
        assert!(logs(filter, "nuthatch::users", Level::DEBUG));
        assert!(!logs(filter, "nuthatch::server", Level::ERROR));
        assert!(logs(filter, "elsewhere", Level::ERROR));
        // Other targets have the default level.
        assert!(logs("nuthatch::users=off", "nuthatch::server", Level::WARN));
        for filter in ["", "chatty", "3", "info,", "nuthatch", "nuthatch=", "a=b=info"] {
            let problem = parse(filter).expect_err(filter);
            assert!(problem.starts_with("expected a level: off, error"), "{problem}");
        }
    }

    /// A writer that blocks until the lock is free.
    #[derive(Clone, Default)]
    struct Slow(Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_does_not_read_blocks_no_thread() {
        let slow = Slow::default();
        let (logs, lines) = Logs::to(slow.clone(), Format::Text).expect("a thread");
        let held = slow.0.lock().expect("no panic");
        for _ in 0..2 * MAX_QUEUED_LINES {
            assert_eq!((&lines).write(b"line\n").expect("never fails"), 5);
        }
        let dropped = lines.dropped.load(Ordering::Relaxed);
        assert!(
            (MAX_QUEUED_LINES - 1..=MAX_QUEUED_LINES).contains(&(dropped as usize)),
            "{dropped}"
        );
        drop(held);
        // When it reads again, the queued lines are written, with the number of dropped ones.
        logs.sender.send(Message::End).expect("a thread");
        logs.done.recv().expect_err("closed at the end");
        let text = String::from_utf8(slow.0.lock().expect("no panic").clone()).expect("a text");
        assert_eq!(text.matches("line\n").count(), 2 * MAX_QUEUED_LINES - dropped as usize);
        assert!(text.contains(&format!("was too slow dropped={dropped}\n")), "{text}");
    }
}
