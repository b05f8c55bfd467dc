//! `nuthatch doctor`: checks the machine for a cache server and says what to change.

mod clock;
mod finding;
mod kernel;
mod limits;
mod machine;
mod memory;
mod network;
mod owner;
mod place;
mod report;
mod socket_file;

use crate::commands::serve::check;
use crate::outcome::{Failure, Outcome};
use crate::settings::{Environment, Flags, LoadedSettings};
use crate::terminal::print;
use clap::Args;
use finding::{Finding, Status};
use machine::Machine;

const NOTES: &str = "\
Examples:
  nuthatch doctor                             for a server with the default settings
  nuthatch doctor --config /etc/nuthatch.toml
  nuthatch doctor --json | jq '.findings[] | select(.status != \"ok\")'

Checks the settings, open files, memory and control groups, swap, overcommit, huge pages, io_uring,
network settings, addresses and the source of the clock, as this user, in this session or container:
run it where the server runs. It changes nothing, and connects to no server. The settings are those
of --config, the environment and the defaults, as for nuthatch serve; flags of a server are not
known to it. Files that settings name, such as those of TLS, passwords and data, are not opened.

An address that is in use is `ok` if a running nuthatch serve has it, and a problem if another
program has it. It is a note if systemd has it, for a socket unit such as nuthatch.socket, or if
this user cannot see which process has it: root can.

  ok       nothing to do
  note     the server works, and a change would make it faster or safer
  problem  the server would not start, or not as configured

Exit status:
  0  no problem was found; there can be notes
  1  at least one problem was found
  2  invalid command line
  3  any other error, for example: the settings file cannot be read";

/// Check this machine for a cache server, and print what to change
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Doctor {
    /// Settings file of the server, or `NUTHATCH_CONFIG`
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let environment = Environment::read(std::env::vars_os()).map_err(Failure::Usage)?;
        let loaded = LoadedSettings::load(self.config.as_deref(), environment, &Flags::default())?;
        let findings = examine(&Machine::this(), &loaded);
        print(&if self.json { report::json(&findings) } else { report::text(&findings) })?;
        let has_problem = findings.iter().any(|finding| finding.status == Status::Problem);
        Ok(if has_problem { Outcome::NotFound } else { Outcome::Success })
    }
}

/// Returns all findings, in the order of the report.
fn examine(machine: &Machine, loaded: &LoadedSettings) -> Vec<Finding> {
    let settings = &loaded.settings;
    let mut findings = vec![rules(loaded), limits::open_files(loaded)];
    findings.extend(memory::examine(machine, loaded));
    findings.push(kernel::version(machine));
    findings.push(kernel::io_uring(machine));
    findings.extend(network::examine(machine, settings));
    findings.push(clock::source(machine));
    findings
}

/// Checks that the settings can be used together.
fn rules(loaded: &LoadedSettings) -> Finding {
    let name = "settings";
    let source = loaded.file.as_deref().unwrap_or("the environment and the defaults");
    match check(loaded) {
        Ok(()) => Finding::ok(name, format!("{source}: valid")),
        Err(failure) => {
            let advice = "change the settings: nuthatch serve does not start with them";
            Finding::problem(name, failure.into_message(), advice)
        }
    }
}
