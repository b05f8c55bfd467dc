//! Starts the process of each system, and lets them take turns.

use crate::figures::{Row, Values, json, parse, summarize, table};
use crate::options::Options;
use crate::workload::keys;
use nuthatch_bench::{Folder, Result};
use std::env::current_exe;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that measures one system. It is ended on drop.
struct Measured {
    system: String,
    child: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl Measured {
    /// Starts the process. It fills the system and sends the figures of the start.
    fn start(
        options: &Options,
        system: &str,
        value_len: usize,
        folder: &Folder,
    ) -> Result<(Self, Values<4>)> {
        let directory = folder.path().to_str().ok_or("the path of the directory is no UTF-8")?;
        let mut child = Command::new(current_exe()?)
            .args(options.for_child(system, value_len, directory))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = child.stdin.take();
        let replies = BufReader::new(child.stdout.take().ok_or("a process without output")?);
        let mut measured = Self { system: system.to_owned(), child, requests, replies };
        let start = measured.reply()?;
        Ok((measured, start))
    }

    fn reply<const N: usize>(&mut self) -> Result<Values<N>> {
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        parse(&line).map_err(|error| format!("the process of {}: {error}", self.system).into())
    }

    fn round(&mut self) -> Result<Values<11>> {
        let requests = self.requests.as_mut().ok_or("the process was ended")?;
        requests.write_all(b"round\n")?;
        requests.flush()?;
        self.reply()
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        // The process ends when its input does.
        self.requests = None;
        // An error is ignored: there is nothing left to wait for.
        let _ = self.child.wait();
    }
}

/// Measures all systems with all sizes of values, and prints the figures.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<()> {
    let mut all = Vec::new();
    for &value_len in &options.value_lens {
        let rows = rows(options, value_len)?;
        if !options.is_json {
            let keys = nuthatch_units::grouped(u64::from(rows[0].keys));
            let memory = nuthatch_units::bytes(options.memory);
            writeln!(out, "{value_len} B values, {keys} keys, {memory} of memory\n")?;
            writeln!(out, "{}", table(&rows))?;
        }
        all.extend(rows);
    }
    if options.is_json {
        writeln!(out, "{}", json(&all, options.rounds))?;
    }
    Ok(())
}

fn rows(options: &Options, value_len: usize) -> Result<Vec<Row>> {
    let folder = Folder::create(&options.directory)?;
    let mut processes = Vec::new();
    let mut starts = Vec::new();
    for system in &options.systems {
        let (process, start) = Measured::start(options, system, value_len, &folder)?;
        processes.push(process);
        starts.push(start);
    }
    let mut rounds = vec![Vec::new(); processes.len()];
    for round in 0..options.rounds {
        // A different system begins each round.
        for turn in 0..processes.len() {
            let at = (round + turn) % processes.len();
            rounds[at].push(processes[at].round()?);
        }
    }
    let keys = keys(options.memory, value_len);
    let row = |((process, of_start), rounds): ((&Measured, _), &Vec<_>)| Row {
        system: process.system.clone(),
        value_len,
        keys,
        of_start,
        of_rounds: summarize(rounds),
    };
    Ok(processes.iter().zip(starts).zip(&rounds).map(row).collect())
}
