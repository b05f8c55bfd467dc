//! Benchmarks several servers on one core each, with the generator on another core. The servers
//! alternate in rounds, so that disturbances of the machine affect all of them.

mod disk;
mod figures;
mod server;
mod snapshot;
mod systems;
mod works;

use crate::batches::Workload;
use crate::error::Error;
use crate::load::{Load, Requests};
use crate::report::Report;
use disk::Counters;
use figures::Figure;
use server::Server;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
pub use systems::System;
use works::{Data, TASKS, Task};

/// The settings of a benchmark.
#[derive(Clone, Debug)]
pub struct Race {
    /// The systems to measure.
    pub systems: Vec<System>,
    /// The names of the workloads; see [`Race::works`].
    pub works: Vec<String>,
    /// Number of rounds of each workload.
    pub rounds: usize,
    /// Connections to each server.
    pub connections: usize,
    /// Requests in a second to each server; as many as possible if `None`.
    pub rate: Option<f64>,
    /// Duration of the load before each measurement.
    pub warmup: Duration,
    /// Duration of each measurement.
    pub measured: Duration,
    /// The core on which the servers run.
    pub server_core: usize,
    /// The core on which the generator runs.
    pub generator_core: usize,
    /// Whether extstore may use the page cache, which is memory beyond its budget.
    pub page_cache: bool,
    /// The path of the `nuthatch` program.
    pub nuthatch: Option<PathBuf>,
}

/// Maximum number of connections that fill a system with a disk. The requests that wait for the
/// disk take memory of the server.
const DISK_FILL_CONNECTIONS: usize = 4;

/// A system with its running server.
struct Entrant {
    system: System,
    server: Server,
}

impl Race {
    /// Returns the names of all workloads.
    pub fn works() -> impl Iterator<Item = &'static str> {
        TASKS.iter().map(|task| task.name)
    }

    /// Returns the names of the workloads that need no disk.
    pub fn works_in_memory() -> impl Iterator<Item = &'static str> {
        TASKS.iter().filter(|task| !task.needs_disk).map(|task| task.name)
    }

    /// Runs the benchmark, writes its progress to `progress` and the results to `out`.
    pub fn run(
        &self,
        json: bool,
        stop: &AtomicBool,
        progress: &mut dyn Write,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let chosen = |task: &&Task| self.works.iter().any(|name| name == task.name);
        let tasks: Vec<&Task> = TASKS.iter().filter(chosen).collect();
        let mut figures = Vec::new();
        for same_data in tasks.chunk_by(|one, other| one.data == other.data) {
            let mut entrants = self.start_and_fill(same_data, stop, progress)?;
            for task in same_data {
                figures.extend(self.race(task, &mut entrants, stop, progress)?);
            }
        }
        if json { figures::json(&figures, out) } else { figures::table(&figures, out) }?;
        Ok(())
    }

    /// Starts all servers that store data, then fills each of them.
    fn start_and_fill(
        &self,
        tasks: &[&Task],
        stop: &AtomicBool,
        progress: &mut dyn Write,
    ) -> Result<Vec<Entrant>, Error> {
        let takes_part = |system: &System| {
            *system != System::Echo && tasks.iter().any(|task| system.protocol_at(task).is_some())
        };
        let mut entrants = Vec::new();
        for &system in self.systems.iter().filter(|system| takes_part(system)) {
            let server = system.start(tasks[0], self.nuthatch.as_ref(), self.server_core)?;
            entrants.push(Entrant { system, server });
        }
        let data @ Data { keys, value_bytes } = tasks[0].data;
        for Entrant { system, server } in &mut entrants {
            let verb = if system.starts_empty() { "filling" } else { "opening" };
            writeln!(progress, "{system}: {verb} {keys} keys of {value_bytes} bytes")?;
            let mut load = self.load(server, tasks[0].workload(system.protocols()[0]));
            server.wait_until(|| load.greet(stop))?;
            if !system.starts_empty() {
                continue;
            }
            if system.has_disk() {
                load.connections = load.connections.min(DISK_FILL_CONNECTIONS);
            }
            if *system != System::Extstore {
                load.fill(stop)?;
                continue;
            }
            let stored = disk::fill_extstore(&load.address, data, stop)?;
            writeln!(progress, "{system}: {stored} of {keys} keys are stored")?;
        }
        Ok(entrants)
    }

    /// Runs all rounds of one workload.
    fn race(
        &self,
        task: &Task,
        entrants: &mut Vec<Entrant>,
        stop: &AtomicBool,
        progress: &mut dyn Write,
    ) -> Result<Vec<Figure>, Error> {
        let echo = self.systems.iter().find(|system| **system == System::Echo);
        let echo = echo.filter(|echo| echo.protocol_at(task).is_some());
        if let Some(&system) = echo {
            // The echo server stores no data, and its messages depend on the workload.
            let mut server = system.start(task, None, self.server_core)?;
            let load = self.load(&server, task.workload(system.protocols()[0]));
            server.wait_until(|| load.reach())?;
            entrants.push(Entrant { system, server });
        }
        let result = self.rounds(task, entrants, stop, progress);
        if echo.is_some() {
            entrants.pop();
        }
        result
    }

    fn rounds(
        &self,
        task: &Task,
        entrants: &[Entrant],
        stop: &AtomicBool,
        progress: &mut dyn Write,
    ) -> Result<Vec<Figure>, Error> {
        let mut requests: Vec<(Workload, Requests)> = Vec::new();
        let mut reports: Vec<Vec<Report>> = vec![Vec::new(); entrants.len()];
        let mut disk: Vec<Option<Counters>> = vec![None; entrants.len()];
        let has_disk = entrants.iter().any(|entrant| entrant.system.has_disk());
        for round in 0..self.rounds {
            writeln!(progress, "{}: round {} of {}", task.name, round + 1, self.rounds)?;
            // With the same requests, items that were read from disk would be in memory later.
            let number = if has_disk { round as u64 } else { 0 };
            if has_disk {
                requests.clear();
            }
            // Each round starts with another system.
            for at in (0..entrants.len()).map(|at| (at + round) % entrants.len()) {
                let Entrant { system, server } = &entrants[at];
                let Some(protocol) = system.protocol_at(task) else { continue };
                let known = requests.iter().position(|(of, _)| of.protocol == protocol);
                let known = known.unwrap_or_else(|| {
                    let workload = task.workload(protocol);
                    requests.push((workload.clone(), Requests::of_round(&workload, number)));
                    requests.len() - 1
                });
                let (workload, requests) = &requests[known];
                let load = self.load(server, workload.clone());
                let counters = || Counters::of(*system, &load.address, server.pid());
                let before = counters()?;
                let run = || load.run(requests, stop);
                let report = match server.extstore_file() {
                    Some(file) if !self.page_cache => disk::without_page_cache(&file, run)?,
                    _ => run(),
                };
                reports[at].push(report?);
                let after = counters()?;
                if let Some((before, after)) = before.zip(after) {
                    disk[at] = Some(disk[at].unwrap_or_default().and(after.since(before)));
                }
            }
        }
        let names = (task.name, task.reference);
        let figure = |((entrant, reports), disk): ((&Entrant, Vec<Report>), Option<Counters>)| {
            let figure = |()| Figure { disk, ..Figure::of(names, entrant.system, &reports) };
            (!reports.is_empty()).then_some(()).map(figure)
        };
        Ok(entrants.iter().zip(reports).zip(disk).filter_map(figure).collect())
    }

    fn load(&self, server: &Server, workload: Workload) -> Load {
        Load {
            address: server.address(workload.protocol).clone(),
            workload,
            connections: self.connections,
            rate: self.rate,
            threads: 1,
            core_number: Some(self.generator_core),
            warmup: self.warmup,
            measured: self.measured,
            server_pid: Some(server.pid()),
        }
    }
}
