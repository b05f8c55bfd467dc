//! `nuthatch-bench soak`: arguments and manual page.

use super::SoakTest;
use crate::failure::Failure;
use clap::Args;
use nuthatch_units::parse_size;
use std::io::Write;
use std::path::PathBuf;

const ABOUT: [&str; 2] = [
    "Run a cache server with a disk for a long time, and check its budgets and its values",
    "

Starts `nuthatch serve` with --memory and --disk, with one and a half times as much data as disk, \
and overwrites, reads, removes and expires values of 64 bytes to 128 KiB. Each value contains its \
key and a version. The run fails if a value is wrong, removed, expired, or older than an \
acknowledged write. Once per second it samples the server: the run fails if its resident memory \
exceeds the budget by more than 3 % and the documented overhead, if its files take more than \
--disk, or if it reports damaged records or a failed disk. Misses are not failures: this is a \
cache. At the end, every key is read.",
];

const NOTES: &str = "\
Examples:
  nuthatch-bench soak --seconds 60 --kills 5
  nuthatch-bench soak --nuthatch target/release/nuthatch --memory 256MiB --disk 8GiB --json

Resident memory does not include pages of the program file. The documented overhead is 4 MiB for
the stacks of the threads that read, twice the longest value, and 1/32 of the budget, at least
4 MiB, that the allocator keeps (docs/operations.md, \"Memory of the process\" and \"Disk tier\").

Output in JSON:
  {\"seconds\":60,\"reads\":900000,\"hits\":500000,\"writes\":800000,\"removals\":90000,
   \"written_bytes\":2000000000,\"kills\":5,\"samples\":60,\"max_resident_bytes\":69000000,
   \"resident_limit_bytes\":77000000,\"max_disk_bytes\":1070000000,\"disk_limit_bytes\":1073741824}

Exit status:
  0  all checks passed
  1  a check failed; the message contains the sample or the key
  2  the command line is wrong
  3  any other error: the server does not start, or closes a connection";

/// Run a cache server with a disk for a long time, and check its budgets and its values.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
pub(crate) struct Soak {
    /// Duration of the run, without the final read of every key
    #[arg(long, value_name = "N", default_value = "3600")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: u64,
    /// Memory of the server, at least 16MiB
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_budget)]
    memory: u64,
    /// Disk of the server, at least 16MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_budget)]
    disk: u64,
    /// Number of times that the server is killed with SIGKILL and started again, evenly spaced
    #[arg(long, value_name = "N", default_value = "0")]
    kills: u32,
    /// Seed of the requests
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Path of the nuthatch program [default: `nuthatch` in the folder of this program]
    #[arg(long, value_name = "PATH")]
    nuthatch: Option<PathBuf>,
    /// Directory for the temporary folder [default: the system's directory for temporary files]
    #[arg(long, value_name = "PATH")]
    directory: Option<PathBuf>,
    /// Print an object in JSON
    #[arg(long)]
    json: bool,
}

/// Parses a budget of the server.
fn parse_budget(text: &str) -> Result<u64, String> {
    const MIN: u64 = 16 << 20;
    let bytes = parse_size(text)?;
    if bytes < MIN { Err("expected at least 16MiB".to_owned()) } else { Ok(bytes) }
}

impl Soak {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let beside = || std::env::current_exe().map(|path| path.with_file_name("nuthatch"));
        let program = self.nuthatch.clone().map_or_else(beside, Ok).map_err(Failure::of)?;
        let test = SoakTest {
            seconds: self.seconds,
            memory: self.memory,
            disk: self.disk,
            kills: self.kills,
            seed: self.seed,
            program,
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
        };
        let summary = test.run()?;
        let output = if self.json { summary.json() } else { summary.text() };
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(output.as_bytes())?;
        Ok(stdout.flush()?)
    }
}
