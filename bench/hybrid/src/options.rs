//! Command-line options.

use crate::registry::SYSTEMS;
use nuthatch_bench::Result;
use std::path::PathBuf;
use std::str::FromStr;

pub(crate) const HELP: &str = "\
Compares caches with a disk tier, as libraries: Nuthatch, foyer and, with the feature rocksdb,
RocksDB. Each system runs in a process of its own. The systems take turns in each round.

Usage: hybrid [OPTION...]

Options:
  --value-size BYTES[,BYTES...]  Sizes of values, each measured separately, from 8 bytes to 64 KiB
                                 [default: 100,1024,10240]
  --memory SIZE                  Memory of each system, for example 64MiB or 1GiB. Keys and values
                                 have 10 times this size [default: 64MiB]
  --disk SIZE                    Disk space of each system that has a limit [default: 2GiB]
  --threads N                    Threads that get values [default: 2]
  --seconds N                    Seconds of a round [default: 10]
  --warmup N                     Seconds of gets before the first round [default: 10]
  --rounds N                     Rounds [default: 5]
  --systems NAME[,NAME...]       Systems to measure [default: all]
  --directory PATH               Directory for temporary files, on a disk
                                 [default: TMPDIR, otherwise /tmp]
  --json                         Prints the rows in JSON instead of tables
  --help                         Prints this page

Examples:
  hybrid --rounds 3 --seconds 4
  hybrid --value-size 1024 --memory 1GiB --disk 20GiB --directory /var/tmp
  hybrid --systems nuthatch,foyer --json

Exit status:
  0  The run is complete, and every value that was read is correct.
  1  The run failed, for example because a system returned a wrong value.
  2  An option is wrong.";

/// Size of a value that is too small for the number of its key.
const MIN_VALUE_LEN: usize = 8;
const MAX_VALUE_LEN: usize = 64 << 10;

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) value_lens: Vec<usize>,
    pub(crate) memory: u64,
    pub(crate) disk: u64,
    pub(crate) threads: usize,
    pub(crate) seconds: u64,
    pub(crate) warmup: u64,
    pub(crate) rounds: usize,
    pub(crate) systems: Vec<String>,
    pub(crate) directory: PathBuf,
    pub(crate) is_json: bool,
    /// The system that this process measures for its parent process.
    pub(crate) measured: Option<String>,
}

impl Options {
    fn defaults() -> Self {
        Self {
            value_lens: vec![100, 1024, 10_240],
            memory: 64 << 20,
            disk: 2 << 30,
            threads: 2,
            seconds: 10,
            warmup: 10,
            rounds: 5,
            systems: SYSTEMS.iter().map(|(name, _)| (*name).to_owned()).collect(),
            directory: std::env::temp_dir(),
            is_json: false,
            measured: None,
        }
    }

    /// Parses the arguments of the program. Returns `None` if the user requests help.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self::defaults();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match &argument[..] {
                "--value-size" => {
                    options.value_lens = value()?.split(',').map(number).collect::<Result<_>>()?;
                }
                "--memory" => options.memory = nuthatch_units::parse_size(&value()?)?,
                "--disk" => options.disk = nuthatch_units::parse_size(&value()?)?,
                "--threads" => options.threads = number(&value()?)?,
                "--seconds" => options.seconds = number(&value()?)?,
                "--warmup" => options.warmup = number(&value()?)?,
                "--rounds" => options.rounds = number(&value()?)?,
                "--systems" => options.systems = value()?.split(',').map(str::to_owned).collect(),
                "--directory" => options.directory = value()?.into(),
                "--json" => options.is_json = true,
                "--measured-system" => options.measured = Some(value()?),
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("there is no option {argument}").into()),
            }
        }
        options.check()?;
        Ok(Some(options))
    }

    fn check(&self) -> Result<()> {
        let lens = MIN_VALUE_LEN..=MAX_VALUE_LEN;
        if let Some(len) = self.value_lens.iter().find(|len| !lens.contains(len)) {
            let (min, max) = (MIN_VALUE_LEN, MAX_VALUE_LEN);
            return Err(format!("--value-size is from {min} to {max}, not {len}").into());
        }
        if self.memory < 16 << 20 || self.memory > 64 << 30 {
            return Err("--memory is from 16MiB to 64GiB".into());
        }
        if self.threads == 0 || self.seconds == 0 || self.rounds == 0 {
            return Err("--threads, --seconds and --rounds are at least 1".into());
        }
        for name in &self.systems {
            if !SYSTEMS.iter().any(|(known, _)| known == name) {
                let known: Vec<_> = SYSTEMS.iter().map(|(known, _)| *known).collect();
                return Err(format!("there is no system {name}, only {}", known.join(", ")).into());
            }
        }
        Ok(())
    }

    /// Returns the arguments of the process that measures a system with values of a size.
    pub(crate) fn for_child(&self, system: &str, value_len: usize, directory: &str) -> Vec<String> {
        let pairs = [
            ("--measured-system", system.to_owned()),
            ("--value-size", value_len.to_string()),
            ("--memory", self.memory.to_string()),
            ("--disk", self.disk.to_string()),
            ("--threads", self.threads.to_string()),
            ("--seconds", self.seconds.to_string()),
            ("--warmup", self.warmup.to_string()),
            ("--directory", directory.to_owned()),
        ];
        pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

fn number<N: FromStr>(text: &str) -> Result<N> {
    text.parse().map_err(|_| format!("{text} is not a number in range").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<Option<Options>> {
        Options::parse(arguments.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_process_of_a_system_gets_the_same_options() {
        let text = "--memory 32MiB --disk 1GiB --threads 3 --seconds 4 --warmup 0";
        let options = parsed(text).expect("good options").expect("no help");
        assert_eq!((options.memory, options.disk, options.threads), (32 << 20, 1 << 30, 3));
        let arguments = options.for_child("foyer", 100, "/var/tmp").into_iter();
        let child = Options::parse(arguments).expect("good options").expect("no help");
        let measured = Some("foyer".to_owned());
        let directory = "/var/tmp".into();
        assert_eq!(child, Options { value_lens: vec![100], measured, directory, ..options });
    }

    #[test]
    fn errors_name_the_argument() {
        for (text, expected) in [
            ("--rounds", "--rounds needs a value"),
            ("--threads two", "two is not a number in range"),
            ("--threads 0", "--threads, --seconds and --rounds"),
            ("--value-size 7", "--value-size is from 8 to 65536, not 7"),
            ("--memory 1MiB", "--memory is from"),
            ("--systems redis", "there is no system redis, only nuthatch, foyer"),
            ("--sytems foyer", "there is no option --sytems"),
        ] {
            let error = parsed(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(parsed("--help").expect("good options").is_none());
    }
}
