//! The live display of `nuthatch top`.

use super::fetch::{Fetcher, sample};
use super::line::{Line, Style};
use super::lines::lines;
use super::sample::Sample;
use super::screen::Screen;
use super::scroll::Scroll;
use super::view::View;
use crate::outcome::Failure;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal;
use nuthatch_listen::admin::Client;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

/// The interval between checks of the keyboard and of signals: 100 ms.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Shows samples until a key or a signal ends the command.
pub(super) fn watch(client: Client, interval: Duration) -> Result<(), Failure> {
    // Taken before the screen is cleared, so that an error stays visible.
    let first = sample(&client).map_err(Failure::Error)?;
    let address = client.address().to_string();
    let failure = |error: io::Error| Failure::Error(format!("<stdout>: {error}"));
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stopped)).map_err(failure)?;
    }
    let (stop, samples) = start_sampling(client, interval);
    let screen = Screen::enter().map_err(failure)?;
    let view = View::new(first, None);
    let mut live =
        Live { view, address, problem: None, shows_report: false, scroll: Scroll::default() };
    let outcome = live.show_until(&screen, &samples, &stopped);
    drop(screen);
    drop(stop);
    outcome.map_err(failure)
}

/// Takes samples on a thread, so that keys work while a server responds slowly. Dropping the
/// returned sender ends the thread.
fn start_sampling(
    client: Client,
    interval: Duration,
) -> (SyncSender<()>, Receiver<Result<Sample, String>>) {
    let (stop, stopped) = sync_channel::<()>(0);
    let (sender, samples) = sync_channel(1);
    let mut fetcher = Fetcher::new(client);
    thread::spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(interval) {
            if sender.send(fetcher.sample()).is_err() {
                break;
            }
        }
    });
    (stop, samples)
}

/// The content of the screen.
struct Live {
    view: View,
    address: String,
    /// The reason why there is no newer sample.
    problem: Option<String>,
    /// Whether the report is shown in place of the counters.
    shows_report: bool,
    scroll: Scroll,
}

impl Live {
    /// Shows samples as they arrive, until a key or a signal ends the command.
    fn show_until(
        &mut self,
        screen: &Screen,
        samples: &Receiver<Result<Sample, String>>,
        stopped: &AtomicBool,
    ) -> io::Result<()> {
        self.show(screen)?;
        while !stopped.load(Ordering::Relaxed) && wait_for_terminal()? {
            while event::poll(Duration::ZERO)? {
                match event::read()? {
                    Event::Key(key) if is_quit_key(key) => return Ok(()),
                    Event::Key(key) if is_switch_key(key) => {
                        self.shows_report = !self.shows_report;
                        self.scroll = Scroll::default();
                        self.show(screen)?;
                    }
                    Event::Key(key) if self.scrolls(key) => self.show(screen)?,
                    Event::Resize(..) => self.show(screen)?,
                    _ => {}
                }
            }
            match samples.try_recv() {
                Ok(sample) => {
                    self.update(sample);
                    self.show(screen)?;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(io::Error::other("no more samples")),
            }
        }
        Ok(())
    }

    fn update(&mut self, sample: Result<Sample, String>) {
        match sample {
            Ok(sample) => {
                self.view = self.view.until(sample);
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Moves the screen if a key does that. Returns whether it does.
    fn scrolls(&mut self, key: KeyEvent) -> bool {
        key.kind != KeyEventKind::Release && self.scroll.follow(key.code)
    }

    fn show(&mut self, screen: &Screen) -> io::Result<()> {
        let (width, height) = terminal::size()?;
        let size = (usize::from(width), usize::from(height));
        let mut lines = lines(&self.view, &self.address, size.0);
        if self.shows_report {
            lines.truncate(1);
            lines.extend(self.view.now.report.lines());
        }
        let mut alarms = Vec::new();
        if let Some(problem) = &self.problem {
            alarms.push(format!("these values are old: {problem}"));
        }
        alarms.extend(self.view.now.token_problem.clone());
        let fixed = 1 + alarms.len();
        let alarms = alarms.into_iter().map(|text| Line { text, style: Style::Alarm });
        lines.splice(1..1, alarms);
        screen.show(&self.scroll.window(lines, fixed, size), height)
    }
}

/// Waits for input, at most for a tick. Returns whether there still is a terminal: without one, the
/// functions of crossterm do not return.
fn wait_for_terminal() -> io::Result<bool> {
    let stdout = io::stdout();
    let mut terminal = [PollFd::new(&stdout, PollFlags::IN)];
    match poll(&mut terminal, Some(&TICK)) {
        // A signal, whose flag the caller reads.
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(!terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)),
    }
}

/// Returns whether a key switches between the counters and the report.
fn is_switch_key(key: KeyEvent) -> bool {
    key.kind != KeyEventKind::Release && matches!(key.code, KeyCode::Tab | KeyCode::Char('k'))
}

fn is_quit_key(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        KeyCode::Char('c' | 'C' | 'd') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_switches_the_screen() {
        for (code, expected) in
            [(KeyCode::Tab, true), (KeyCode::Char('k'), true), (KeyCode::Char('q'), false)]
        {
            assert_eq!(is_switch_key(KeyEvent::new(code, KeyModifiers::NONE)), expected);
        }
    }

    #[test]
    fn some_keys_quit() {
        let key = KeyEvent::new;
        for (key, expected) in [
            (key(KeyCode::Char('q'), KeyModifiers::NONE), true),
            (key(KeyCode::Esc, KeyModifiers::NONE), true),
            (key(KeyCode::Char('c'), KeyModifiers::CONTROL), true),
            (key(KeyCode::Char('c'), KeyModifiers::NONE), false),
            (key(KeyCode::Enter, KeyModifiers::NONE), false),
        ] {
            assert_eq!(is_quit_key(key), expected, "{key:?}");
        }
    }
}
