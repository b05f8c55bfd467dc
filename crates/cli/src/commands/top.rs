//! `nuthatch top`: a cache server, watched.

use super::serve::ADMIN;
use super::{Answer, Failure};
use crate::streams::Stdout;
use crate::top::{Line, Sample, Screen, Style, View, json, lines};
use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use crossterm::terminal;
use nuthatch_server::Address;
use nuthatch_server::admin::Client;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, channel, sync_channel,
};
use std::thread;
use std::time::Duration;

const NOTES: &str = "\
Examples:
  nuthatch top                                   the server of this machine; q quits
  nuthatch top 127.0.0.1:9500 --interval 5s
  nuthatch top unix:/run/nuthatch/admin.sock
  nuthatch top --once --interval 10s             ten seconds in plain text
  nuthatch top --json | jq .hit_ratio

ADDR is the admin endpoint: see --admin of nuthatch serve. Rates of a single sample are means since
the server started. Percentiles are accurate to a factor of two.

Exit status:
  0  all went well
  2  the command line is wrong
  3  any other error, for example: no server answers";

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How often the keyboard and signals are looked at.
const TICK: Duration = Duration::from_millis(100);

/// Columns of a text that is not shown on a terminal.
const COLUMNS: usize = 100;

/// Watch a cache server: requests, hits and misses, latencies, memory
///
/// Shows the metrics of the admin endpoint live. If the output is not a terminal, it prints one
/// sample and exits.
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Top {
    /// Address of the server's admin endpoint: host:port or unix:PATH
    #[arg(value_name = "ADDR", default_value = ADMIN)]
    address: String,
    /// Time between samples, such as 500ms, 2s or 1m [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    interval: Option<Duration>,
    /// Print one sample as plain text and exit; with --interval, the rates within the interval
    #[arg(long)]
    once: bool,
    /// Print one sample as JSON, and exit
    #[arg(long)]
    json: bool,
}

impl Top {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let usage = |error| Failure::Usage(format!("ADDR: {error}"));
        let address: Address = self.address.parse().map_err(usage)?;
        let client = Client::new(address, TIMEOUT).map_err(|e| Failure::Error(e.to_string()))?;
        let mut stdout = Stdout::new();
        if self.once || self.json || !stdout.is_terminal() {
            let view = self.view(&client)?;
            stdout.put(self.text(&view, client.address()).as_bytes())?;
            stdout.flush()?;
        } else {
            drop(stdout);
            self.watch(client)?;
        }
        Ok(Answer::Whole)
    }

    /// One sample, or two where an interval is wanted.
    fn view(&self, client: &Client) -> Result<View, Failure> {
        let first = sample(client).map_err(Failure::Error)?;
        let Some(interval) = self.interval else { return Ok(View::new(first, None)) };
        // Nothing is ever sent: this is the wait between two samples.
        let (_sender, nothing) = channel::<()>();
        let _ = nothing.recv_timeout(interval);
        let second = sample(client).map_err(Failure::Error)?;
        Ok(View::new(second, Some(&first)))
    }

    fn text(&self, view: &View, address: &Address) -> String {
        let address = address.to_string();
        if self.json {
            return json(view, &address);
        }
        let lines = lines(view, &address, COLUMNS);
        lines.iter().map(|line| line.text.trim_end().to_owned() + "\n").collect()
    }

    /// Shows samples until somebody has seen enough.
    fn watch(&self, client: Client) -> Result<(), Failure> {
        let interval = self.interval.unwrap_or(Duration::from_secs(1));
        // Before the screen is cleared: without an answer there is nothing to show.
        let first = sample(&client).map_err(Failure::Error)?;
        let address = client.address().to_string();
        let failure = |error: io::Error| Failure::Error(format!("<stdout>: {error}"));
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stopped)).map_err(failure)?;
        }
        let (stop, samples) = start_sampling(client, interval);
        let screen = Screen::enter().map_err(failure)?;
        let mut live = Live { view: View::new(first, None), address, problem: None };
        let shown = live.show_until(&screen, &samples, &stopped);
        drop(screen);
        drop(stop);
        shown.map_err(failure)
    }
}

/// Takes samples in a thread of its own, so that keys are heard while a server takes its time. It
/// ends once what is answered first is dropped.
fn start_sampling(
    client: Client,
    interval: Duration,
) -> (SyncSender<()>, Receiver<Result<Sample, String>>) {
    let (stop, stopped) = sync_channel::<()>(0);
    let (sender, samples) = sync_channel(1);
    thread::spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(interval) {
            if sender.send(sample(&client)).is_err() {
                break;
            }
        }
    });
    (stop, samples)
}

/// What is on the screen.
struct Live {
    view: View,
    address: String,
    /// Why there is no newer sample.
    problem: Option<String>,
}

impl Live {
    /// Shows samples as they come, until a key or a signal ends it.
    fn show_until(
        &mut self,
        screen: &Screen,
        samples: &Receiver<Result<Sample, String>>,
        stopped: &AtomicBool,
    ) -> io::Result<()> {
        self.show(screen)?;
        while !stopped.load(Ordering::Relaxed) {
            if event::poll(TICK)? {
                match event::read()? {
                    Event::Key(key) if ends(key) => break,
                    Event::Resize(..) => self.show(screen)?,
                    _ => {}
                }
            }
            match samples.try_recv() {
                Ok(sample) => {
                    self.take(sample);
                    self.show(screen)?;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(io::Error::other("no more samples")),
            }
        }
        Ok(())
    }

    fn take(&mut self, sample: Result<Sample, String>) {
        match sample {
            Ok(sample) => {
                self.view = self.view.until(sample);
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    fn show(&self, screen: &Screen) -> io::Result<()> {
        let size = terminal::size()?;
        let mut lines = lines(&self.view, &self.address, usize::from(size.0));
        if let Some(problem) = &self.problem {
            let text = format!("this is what was there before: {problem}");
            lines.insert(1, Line { text, style: Style::Alarm });
        }
        screen.show(&lines, size)
    }
}

fn ends(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        KeyCode::Char('c' | 'C' | 'd') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

/// Returns what the server has counted by now.
///
/// # Errors
///
/// Returns what was found at the address instead of the admin endpoint of a cache server.
fn sample(client: &Client) -> Result<Sample, String> {
    let address = client.address();
    let text = client.get("/metrics").map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => format!(
            "nothing listens at {address}: {error}; `nuthatch serve --admin {address}` starts a \
             server that does"
        ),
        // It listens, and its answer is not the one of an admin endpoint.
        io::ErrorKind::InvalidData | io::ErrorKind::Other => another_server(address, &error),
        _ => format!("{address}: {error}"),
    })?;
    Sample::parse(&text).map_err(|problem| another_server(address, &problem))
}

fn another_server(address: &Address, problem: &dyn Display) -> String {
    format!(
        "{address}: expected the admin endpoint of nuthatch serve, found another server: \
         {problem}; name the address that --admin of the cache server has (default: {ADMIN})"
    )
}

/// A time such as `500ms`, `2s`, `1m`; a number alone is of seconds.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time from 100ms to 1h, such as 500ms, 2s or 1m".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * scale;
    if (0.1..=3600.0).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read() {
        for (text, ms) in [("100ms", 100), ("2", 2000), ("0.5s", 500), ("1m", 60_000)] {
            assert_eq!(parse_interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0", "99ms", "2h", "-1s", "1.2.3", "1d", "1e3", "nan"] {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }

    #[test]
    fn some_keys_end_it() {
        let key = KeyEvent::new;
        for (key, expected) in [
            (key(KeyCode::Char('q'), KeyModifiers::NONE), true),
            (key(KeyCode::Esc, KeyModifiers::NONE), true),
            (key(KeyCode::Char('c'), KeyModifiers::CONTROL), true),
            (key(KeyCode::Char('c'), KeyModifiers::NONE), false),
            (key(KeyCode::Enter, KeyModifiers::NONE), false),
        ] {
            assert_eq!(ends(key), expected, "{key:?}");
        }
    }
}
