//! `nuthatch top`: shows the metrics of a cache server, live or once.
//!
//! The text of `/metrics` becomes points (`exposition`), these become the counters of a server
//! (`sample`), two samples become rates (`view`), and a view becomes lines (`lines`) or JSON
//! (`json`). `/live.json` has what is no metric (`report`).

mod cluster;
mod disk;
mod exposition;
mod fetch;
mod json;
mod line;
mod lines;
mod live;
mod quantity;
mod report;
mod sample;
mod screen;
mod scroll;
mod view;

use crate::arguments::read_token;
use crate::outcome::{Failure, Outcome};
use crate::settings::DEFAULT_ADMIN;
use crate::terminal::Stdout;
use clap::Args;
use fetch::sample;
use json::json;
use lines::lines;
use nuthatch_listen::Address;
use nuthatch_listen::admin::Client;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;
use view::View;

const NOTES: &str = "\
Examples:
  nuthatch top                                   the server of this machine; q quits, Tab
                                                 switches to keys, slow commands and clients,
                                                 and arrows and PgDn scroll
  nuthatch top 127.0.0.1:9500 --interval 5s
  nuthatch top unix:/run/nuthatch/admin.sock
  nuthatch top --once --interval 10s             ten seconds in plain text
  nuthatch top --json | jq .hit_ratio
  nuthatch top --token-file token --once         with keys, addresses and arguments

ADDR is the admin endpoint: see --admin of nuthatch serve. Rates of a single sample are means since
the server started. Percentiles are accurate to a factor of two.

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: no server responds";

/// The maximum time for a response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The width of text that is not shown on a terminal.
const DEFAULT_COLUMNS: usize = 100;

/// Watch a cache server: requests, hits and misses, latencies, memory
///
/// Shows the metrics of the admin endpoint live. If the output is not a terminal, it prints one
/// sample and exits.
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Top {
    /// Address of the server's admin endpoint: host:port or unix:PATH
    #[arg(value_name = "ADDR", default_value = DEFAULT_ADMIN)]
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
    /// A file with the token of the server (see --admin-token-file of nuthatch serve): shows keys,
    /// addresses of clients, and arguments of slow commands
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Top {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let usage = |error| Failure::Usage(format!("ADDR: {error}"));
        let address: Address = self.address.parse().map_err(usage)?;
        let failed = |error: io::Error| Failure::Error(error.to_string());
        let mut client = Client::new(address, TIMEOUT).map_err(failed)?;
        if let Some(file) = &self.token_file {
            client = client.with_token(&read_token(file)?).map_err(failed)?;
        }
        let mut stdout = Stdout::new();
        if self.once || self.json || !stdout.is_terminal() {
            let view = self.view(&client)?;
            stdout.write(self.text(&view, client.address()).as_bytes())?;
            stdout.flush()?;
        } else {
            drop(stdout);
            live::watch(client, self.interval.unwrap_or(Duration::from_secs(1)))?;
        }
        Ok(Outcome::Success)
    }

    /// Takes one sample, or two with an interval.
    fn view(&self, client: &Client) -> Result<View, Failure> {
        let first = sample(client).map_err(Failure::Error)?;
        let Some(interval) = self.interval else { return Ok(View::new(first, None)) };
        // Nothing is sent: this waits for the interval.
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
        let mut lines = lines(view, &address, DEFAULT_COLUMNS);
        lines.extend(view.now.report.lines());
        lines.iter().map(|line| line.text.trim_end().to_owned() + "\n").collect()
    }
}

/// Parses a time such as `500ms`, `2s` or `1m`. A number without a unit is in seconds.
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
    fn intervals_are_parsed() {
        for (text, ms) in [("100ms", 100), ("2", 2000), ("0.5s", 500), ("1m", 60_000)] {
            assert_eq!(parse_interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0", "99ms", "2h", "-1s", "1.2.3", "1d", "1e3", "nan"] {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }
}
