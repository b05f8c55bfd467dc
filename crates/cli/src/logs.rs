//! Logs on standard error, which keep nobody waiting.

use crate::outcome::Failure;
use crate::terminal::tell;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// Lines that may wait to be written.
const LINES_MOST: usize = 1024;

/// How long the last lines may take to be written.
const FAREWELL: Duration = Duration::from_secs(1);

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// Whether [`warn`] logs records.
static WARNINGS_ARE_RECORDS: AtomicBool = AtomicBool::new(false);

/// Reports a warning about settings or files. It is a record of the log if the log has JSON lines
/// or the server runs already, and otherwise a plain line on standard error.
pub(crate) fn warn(message: impl Display) {
    if WARNINGS_ARE_RECORDS.load(Ordering::Relaxed) {
        tracing::warn!(target: "nuthatch::server", "{message}");
    } else {
        tell(format_args!("warning: {message}"));
    }
}

/// Notes that the server runs: from now on, each warning is a record.
pub(crate) fn server_runs() {
    WARNINGS_ARE_RECORDS.store(true, Ordering::Relaxed);
}

/// Logs what a filter lets through from here on, until what is answered is dropped.
pub(crate) fn start(filter: &str, format: Format) -> Result<Logs, Failure> {
    let filter = parse(filter).map_err(Failure::Usage)?;
    let logs = Logs::to(io::stderr(), format);
    let (mut logs, lines) = logs.map_err(|error| Failure::Error(error.to_string()))?;
    let layer = fmt::layer().with_ansi(false).log_internal_errors(false).with_writer(lines);
    let layer = match format {
        Format::Text => layer.boxed(),
        Format::Json => layer.json().flatten_event(true).boxed(),
    };
    let (filter, handle) = reload::Layer::new(filter);
    logs.filter = LogFilter(Some(handle));
    let subscriber = Registry::default().with(layer.with_filter(filter));
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| Failure::Error(error.to_string()))?;
    WARNINGS_ARE_RECORDS.store(format == Format::Json, Ordering::Relaxed);
    Ok(logs)
}

/// What is wrong with a filter, if something is.
pub(crate) fn check(filter: &str) -> Result<(), String> {
    parse(filter).map(drop)
}

/// A filter such as `info` or `warn,nuthatch::users=off`. What it does not name is logged from
/// warnings on.
fn parse(text: &str) -> Result<Targets, String> {
    let (mut filter, mut default) = (Targets::new(), LevelFilter::WARN);
    for part in text.split(',').map(str::trim) {
        let (about, level) = match part.split_once('=') {
            Some((about, level)) => (Some(about), level),
            None => (None, part),
        };
        let levels = "a level: off, error, warn, info, debug or trace";
        let found = level_named(level);
        let level = found.ok_or_else(|| format!("expected {levels}, found `{part}`"))?;
        match about {
            Some(about) => filter = filter.with_target(about, level),
            None => default = level,
        }
    }
    Ok(filter.with_default(default))
}

/// A level by its name. Numbers and nothing at all would be read, too.
fn level_named(name: &str) -> Option<LevelFilter> {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    name.parse().ok().filter(|_| is_name)
}

/// What the thread that writes is told.
enum Message {
    Line(Vec<u8>),
    End,
}

/// The filter of what is logged, which can be replaced.
#[derive(Clone)]
pub(crate) struct LogFilter(Option<reload::Handle<Targets, Registry>>);

impl LogFilter {
    /// Replaces the filter. One that is wrong, which [`check`] tells, changes nothing.
    pub(crate) fn set(&self, filter: &str) {
        if let (Some(handle), Ok(filter)) = (&self.0, parse(filter)) {
            // It fails only where nothing is logged any more.
            let _ = handle.reload(filter);
        }
    }
}

/// The thread that writes. What was logged before this is dropped is written, if anybody reads.
pub(crate) struct Logs {
    sender: SyncSender<Message>,
    filter: LogFilter,
    /// Closed when the thread is done.
    done: Receiver<()>,
}

/// Where lines are handed over.
struct Lines {
    sender: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl Logs {
    fn to(mut out: impl Write + Send + 'static, format: Format) -> io::Result<(Self, Lines)> {
        let (sender, messages) = sync_channel(LINES_MOST);
        let (is_done, done) = sync_channel(0);
        let dropped = Arc::new(AtomicU64::new(0));
        let lines = Lines { sender: sender.clone(), dropped: Arc::clone(&dropped) };
        thread::Builder::new().name("nuthatch-logs".to_owned()).spawn(move || {
            let _is_done: SyncSender<()> = is_done;
            write_all(&messages, &dropped, format, &mut out);
        })?;
        Ok((Self { sender, filter: LogFilter(None), done }, lines))
    }

    /// Returns what replaces the filter.
    pub(crate) fn filter(&self) -> LogFilter {
        self.filter.clone()
    }
}

/// Writes lines until the end. Where nobody reads them, nothing is lost.
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
            let what = "lines were dropped: nobody read them";
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
        // Where there is no room, nobody has read for long: what waits is not waited for.
        if self.sender.try_send(Message::End).is_ok() {
            let _ = self.done.recv_timeout(FAREWELL);
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// Each line comes with one call.
impl Write for &Lines {
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
    fn filters_are_levels_alone_or_by_what_a_line_is_about() {
        let logs = |filter: &str, about, level| {
            parse(filter).expect("a filter").would_enable(about, &level)
        };
        assert!(logs("info", "nuthatch::users", Level::INFO));
        assert!(!logs("info", "nuthatch::users", Level::DEBUG));
        assert!(!logs("off", "nuthatch::users", Level::ERROR));
        let filter = "error, nuthatch::users=debug,nuthatch=OFF";
        assert!(logs(filter, "nuthatch::users", Level::DEBUG));
        assert!(!logs(filter, "nuthatch::server", Level::ERROR));
        assert!(logs(filter, "elsewhere", Level::ERROR));
        // What is not named is as it is without a filter.
        assert!(logs("nuthatch::users=off", "nuthatch::server", Level::WARN));
        for filter in ["", "chatty", "3", "info,", "nuthatch", "nuthatch=", "a=b=info"] {
            let problem = parse(filter).expect_err(filter);
            assert!(problem.starts_with("expected a level: off, error"), "{problem}");
        }
    }

    /// Takes nothing until the lock is free.
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
    fn a_reader_who_does_not_read_keeps_nobody_waiting() {
        let slow = Slow::default();
        let (logs, lines) = Logs::to(slow.clone(), Format::Text).expect("a thread");
        let held = slow.0.lock().expect("no panic");
        for _ in 0..2 * LINES_MOST {
            assert_eq!((&lines).write(b"line\n").expect("never fails"), 5);
        }
        let dropped = lines.dropped.load(Ordering::Relaxed);
        assert!((LINES_MOST - 1..=LINES_MOST).contains(&(dropped as usize)), "{dropped}");
        drop(held);
        // Once it reads again, what was kept is written, and how much was not.
        logs.sender.send(Message::End).expect("a thread");
        logs.done.recv().expect_err("closed at the end");
        let text = String::from_utf8(slow.0.lock().expect("no panic").clone()).expect("a text");
        assert_eq!(text.matches("line\n").count(), 2 * LINES_MOST - dropped as usize);
        assert!(text.contains(&format!("nobody read them dropped={dropped}\n")), "{text}");
    }
}
