//! `nuthatch serve`: a cache server, and a store beside it if the settings have one.

mod access;
mod check;
mod cluster;
mod compression;
mod config_command;
mod config_rewrite;
mod connection_limits;
mod data_dir;
mod disk;
#[cfg(test)]
mod docs_tests;
mod etcd;
mod listeners;
mod manual;
mod memory;
mod node_access;
mod node_files;
mod node_slots;
mod reload;
mod run;
mod shutdown;
mod snapshots;
mod store_server;
mod warm_restart;

pub(super) use check::check;
pub(super) use memory::check_memory;
pub(super) use run::possible_clients;

use crate::logs::{self, Logs};
use crate::outcome::{Failure, Outcome};
use crate::settings::{self, Environment, Flags, LoadedSettings, Settings};
use crate::terminal::Stdout;
use clap::Args;
use nuthatch_telemetry::LogOptions;
use std::mem;

/// Serve a cache to clients of Redis and memcached
///
/// Expiry has millisecond resolution. When the memory is used up, the server evicts the keys that
/// are read least; a single scan over many keys does not displace the hot ones (S3-FIFO).
#[derive(Debug, Args)]
#[command(after_long_help = manual::NOTES)]
pub(crate) struct Serve {
    /// Settings file in TOML, or `NUTHATCH_CONFIG`; - is standard input
    ///
    /// Without it no file is read, not even nuthatch.toml in the working directory.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Print all settings as a settings file, with the source of each value, and exit
    #[arg(long)]
    show_config: bool,
    /// Print the settings as JSON
    #[arg(long, requires = "show_config")]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let mut environment = Environment::read(std::env::vars_os()).map_err(Failure::Usage)?;
        let warnings = mem::take(&mut environment.warnings);
        let loaded = LoadedSettings::load(self.config.as_deref(), environment, &self.flags);
        // Warnings are records of the log if it has JSON lines.
        let logs = loaded.as_ref().ok().filter(|_| !self.show_config).map(start_logs);
        let logs = logs.transpose()?;
        for warning in warnings {
            logs::warn(warning);
        }
        let mut loaded = loaded?;
        check::check(&loaded)?;
        let Some(logs) = logs else {
            let text = if self.json { settings::json(&loaded) } else { settings::toml(&loaded) };
            let mut stdout = Stdout::new();
            stdout.write(text.as_bytes())?;
            stdout.flush()?;
            return Ok(Outcome::Success);
        };
        memory::set_default_memory(&mut loaded);
        self.serve(&loaded, &logs)
    }

    /// Serves until a signal ends it.
    fn serve(&self, loaded: &LoadedSettings, logs: &Logs) -> Result<Outcome, Failure> {
        let load = {
            let (file, flags) = (self.config.clone(), self.flags.clone());
            move |environment| LoadedSettings::load(file.as_deref(), environment, &flags)
        };
        run::serve(loaded, logs, load)
    }
}

/// Starts the log with the format and the filter of the settings.
fn start_logs(loaded: &LoadedSettings) -> Result<Logs, Failure> {
    let Settings { log, log_format, otlp, .. } = &loaded.settings;
    let format = if *log_format == "json" { logs::Format::Json } else { logs::Format::Text };
    logs::start(LogOptions { filter: log, format, otlp, service: "nuthatch-serve" })
}
