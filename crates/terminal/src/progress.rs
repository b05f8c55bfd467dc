//! The progress of a command on stderr: a bar on a terminal, otherwise a line every few seconds.

use crate::message::print_message;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nuthatch_snapshot::{Progress, Stage};
use nuthatch_units::{bytes, grouped};
use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The minimum time between lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the progress of a command.
pub struct Display {
    form: Form,
    total_bytes: Option<u64>,
    state: Mutex<State>,
}

enum Form {
    Quiet,
    Bar(ProgressBar),
    Lines,
}

struct State {
    stage: &'static str,
    stage_start: Instant,
    last_line: Instant,
}

impl Display {
    /// Starts a display. `total_bytes` is the length of the inputs, if it is known.
    pub fn new(quiet: bool, total_bytes: Option<u64>) -> Self {
        let form = if quiet {
            Form::Quiet
        } else if stderr().is_terminal() {
            Form::Bar(reading_bar(total_bytes))
        } else {
            Form::Lines
        };
        let now = Instant::now();
        let state = State { stage: "", stage_start: now, last_line: now };
        Self { form, total_bytes, state: Mutex::new(state) }
    }

    /// Shows how many bytes of the inputs are read, and how many rows they have.
    pub fn reading(&self, read_bytes: u64, rows: u64) {
        match &self.form {
            Form::Quiet => {}
            Form::Bar(bar) => bar.set_position(read_bytes),
            Form::Lines => {
                self.line(|elapsed| reading_line((read_bytes, rows), self.total_bytes, elapsed));
            }
        }
    }

    /// Shows the progress of building a snapshot.
    pub fn building(&self, progress: Progress) {
        let Progress { stage, done, total } = progress;
        let stage = match stage {
            Stage::Sorting => "sorting",
            Stage::Writing => "writing",
            Stage::Syncing => "syncing",
            _ => "making",
        };
        self.stage(stage, done, total);
    }

    /// Shows how many rows or entries of a stage are done. A total of zero is unknown.
    pub fn stage(&self, name: &'static str, done: u64, total: u64) {
        if matches!(self.form, Form::Quiet) {
            return;
        }
        self.enter(name, total);
        match &self.form {
            Form::Bar(bar) => bar.set_position(done),
            _ => self.line(|elapsed| stage_line(name, done, total, elapsed)),
        }
    }

    /// Shows how many rows of a stage are done, with their bytes and rates. A total of zero is
    /// unknown.
    pub fn rows(&self, name: &'static str, done: u64, total: u64, read_bytes: u64) {
        match &self.form {
            Form::Quiet => {}
            Form::Bar(bar) => {
                if self.is_new_stage(name) {
                    let template = "{msg} [{wide_bar}] {human_pos}/{human_len} rows, {per_sec}, \
                                    {eta} left";
                    let spinner = "{msg}, {human_pos} rows, {per_sec}, {elapsed}";
                    bar.set_style(style(if total > 0 { template } else { spinner }));
                    bar.set_length(total);
                    bar.reset();
                }
                bar.set_message(format!("{name}, {}", bytes(read_bytes)));
                // What is expected is an estimate.
                bar.set_length(total.max(done));
                bar.set_position(done);
            }
            Form::Lines => {
                self.is_new_stage(name);
                self.line(|elapsed| rows_line((name, done, total), read_bytes, elapsed));
            }
        }
    }

    /// Shows how many bytes of a stage are done. `note` is appended to the name of the stage.
    pub fn transferred(&self, name: &'static str, note: &str, done: u64, total: u64) {
        match &self.form {
            Form::Quiet => {}
            Form::Bar(bar) => {
                if self.is_new_stage(name) {
                    bar.set_style(style(
                        "{msg} [{wide_bar}] {binary_bytes}/{binary_total_bytes}, \
                         {binary_bytes_per_sec}, {eta} left",
                    ));
                    bar.set_length(total);
                    bar.reset();
                }
                bar.set_message(format!("{name}{note}"));
                bar.set_position(done);
            }
            Form::Lines => {
                self.is_new_stage(name);
                self.line(|elapsed| transfer_line(name, note, done, total, elapsed));
            }
        }
    }

    /// Calls `write` while the bar is hidden, so that `write` can write to the terminal.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.form {
            Form::Bar(bar) => bar.suspend(write),
            Form::Quiet | Form::Lines => write(),
        }
    }

    /// Clears the bar.
    pub fn finish(&self) {
        if let Form::Bar(bar) = &self.form {
            bar.finish_and_clear();
        }
    }

    /// Returns whether the stage differs from the previous one, and records it.
    fn is_new_stage(&self, name: &'static str) -> bool {
        let Ok(mut state) = self.state.lock() else { return false };
        let is_new_stage = state.stage != name;
        if is_new_stage {
            state.stage = name;
            state.stage_start = Instant::now();
        }
        is_new_stage
    }

    fn enter(&self, name: &'static str, total: u64) {
        if !self.is_new_stage(name) {
            return;
        }
        if let Form::Bar(bar) = &self.form {
            let template = "{msg} [{wide_bar}] {human_pos}/{human_len}, {eta} left";
            let spinner = "{msg} {elapsed}";
            bar.set_style(style(if total > 0 { template } else { spinner }));
            bar.set_message(name);
            bar.set_length(total);
            bar.reset();
        }
    }

    /// Writes a line, unless the last one is too recent.
    fn line(&self, line: impl FnOnce(Duration) -> String) {
        let Ok(mut state) = self.state.lock() else { return };
        if state.last_line.elapsed() >= LINE_INTERVAL {
            state.last_line = Instant::now();
            print_message(line(state.stage_start.elapsed()));
        }
    }
}

fn reading_bar(total_bytes: Option<u64>) -> ProgressBar {
    let template = match total_bytes {
        Some(_) => {
            "reading [{wide_bar}] {binary_bytes}/{binary_total_bytes}, \
             {binary_bytes_per_sec}, {eta} left"
        }
        None => "reading {binary_bytes}, {binary_bytes_per_sec}",
    };
    let bar = ProgressBar::with_draw_target(total_bytes, ProgressDrawTarget::stderr());
    bar.set_style(style(template));
    bar
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

fn reading_line((read_bytes, rows): (u64, u64), total: Option<u64>, elapsed: Duration) -> String {
    let rate = read_bytes as f64 / elapsed.as_secs_f64().max(0.001);
    let (rows, read) = (grouped(rows), bytes(read_bytes));
    #[expect(clippy::cast_sign_loss, reason = "no rate is below zero")]
    let rate_text = bytes(rate as u64);
    match total {
        Some(total) => {
            let left = total.saturating_sub(read_bytes) as f64 / rate.max(1.0);
            let total = bytes(total);
            format!("reading: {rows} rows, {read} of {total}, {rate_text}/s, {left:.0} s left")
        }
        None => format!("reading: {rows} rows, {read}, {rate_text}/s"),
    }
}

fn rows_line((stage, done, total): (&str, u64, u64), read_bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = done as f64 / seconds;
    let (rows, read) = (grouped(done), bytes(read_bytes));
    #[expect(clippy::cast_sign_loss, reason = "no rate is below zero")]
    let per_second = grouped(rate as u64);
    if total == 0 {
        return format!("{stage}: {rows} rows, {read}, {per_second} rows/s");
    }
    let left = total.saturating_sub(done) as f64 / rate.max(1.0);
    let total = grouped(total.max(done));
    format!("{stage}: {rows} of about {total} rows, {read}, {per_second} rows/s, {left:.0} s left")
}

fn transfer_line(stage: &str, note: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let left = total.saturating_sub(done) as f64 / rate.max(1.0);
    #[expect(clippy::cast_sign_loss, reason = "no rate is below zero")]
    let rate = bytes(rate as u64);
    let (done, total) = (bytes(done), bytes(total));
    format!("{stage}{note}: {done} of {total}, {rate}/s, {left:.0} s left")
}

fn stage_line(stage: &str, done: u64, total: u64, elapsed: Duration) -> String {
    if total == 0 {
        return stage.to_owned();
    }
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let left = total.saturating_sub(done) as f64 / rate.max(1.0);
    format!("{stage}: {} of {}, {left:.0} s left", grouped(done), grouped(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_rate_and_time_left() {
        let step = (30 << 20, 1_000_000);
        let elapsed = Duration::from_secs(10);
        assert_eq!(
            reading_line(step, Some(90 << 20), elapsed),
            "reading: 1,000,000 rows, 30.0 MiB of 90.0 MiB, 3.0 MiB/s, 20 s left"
        );
        assert_eq!(
            reading_line(step, None, elapsed),
            "reading: 1,000,000 rows, 30.0 MiB, 3.0 MiB/s"
        );
        assert_eq!(
            rows_line(("reading", 1_000_000, 4_000_000), 30 << 20, elapsed),
            "reading: 1,000,000 of about 4,000,000 rows, 30.0 MiB, 100,000 rows/s, 30 s left"
        );
        assert_eq!(
            rows_line(("reading", 1_000, 0), 1 << 10, elapsed),
            "reading: 1,000 rows, 1.0 KiB, 100 rows/s"
        );
        let line = stage_line("writing", 250, 1000, elapsed);
        assert_eq!(line, "writing: 250 of 1,000, 30 s left");
        assert_eq!(stage_line("syncing", 0, 0, elapsed), "syncing");
        assert_eq!(
            transfer_line("reading", ", 50 % from the cache", 30 << 20, 90 << 20, elapsed),
            "reading, 50 % from the cache: 30.0 MiB of 90.0 MiB, 3.0 MiB/s, 20 s left"
        );
    }
}
