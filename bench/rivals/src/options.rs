//! Command-line options.

use nuthatch_bench::store::StoreOptions;
use nuthatch_bench::{Options, Result};
use std::str::FromStr;

pub(crate) const USAGE: &str = "\
usage: rivals [--keys N[,N...]] [--vectors N] [--rounds N] [--directory PATH] [--json]
       rivals store [OPTION...]    ordered stores; see rivals store --help

  --keys N[,N...]   numbers of short texts, each measured separately [1000000,20000000]
  --vectors N       number of vectors, 0 for none [100000]
  --rounds N        rounds of each workload [5]
  --directory PATH  directory for temporary files, on a disk [the system's directory for
                    temporary files]
  --json            print rows in JSON instead of tables";

pub(crate) const STORE_USAGE: &str = "\
usage: rivals store [--rows N] [--key-bytes N] [--value-bytes N] [--writes N] [--rounds N]
                    [--directory PATH] [--json]

  --rows N          rows to load and scan [1600000]
  --key-bytes N     bytes of a key, from 5 to 16 [16]
  --value-bytes N   bytes of a value [100]
  --writes N        durable writes of one row each [300]
  --rounds N        rounds of each workload [5]
  --directory PATH  directory for temporary files, on a disk
  --json            print rows in JSON instead of a table";

/// Parses the options of ordered stores. Returns `None` if the user requests help.
pub(crate) fn from_store(
    mut arguments: impl Iterator<Item = String>,
) -> Result<Option<StoreOptions>> {
    let mut options = StoreOptions::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match &argument[..] {
            "--rows" => options.rows = number(&value()?)?,
            "--key-bytes" => options.key_len = number(&value()?)?,
            "--value-bytes" => options.value_len = number(&value()?)?,
            "--writes" => options.writes = number(&value()?)?,
            "--rounds" => options.rounds = number(&value()?)?,
            "--directory" => options.directory = value()?.into(),
            "--json" => options.json = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("no option {argument}\n{STORE_USAGE}").into()),
        }
    }
    Ok(Some(options))
}

/// Parses the options of snapshots. Returns `None` if the user requests help.
pub(crate) fn from(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match &argument[..] {
            "--keys" => options.keys = value()?.split(',').map(number).collect::<Result<_>>()?,
            "--vectors" => options.vectors = number(&value()?)?,
            "--rounds" => options.rounds = number(&value()?)?,
            "--directory" => options.directory = value()?.into(),
            "--json" => options.json = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("no option {argument}\n{USAGE}").into()),
        }
    }
    Ok(Some(options))
}

fn number<N: FromStr>(text: &str) -> Result<N> {
    text.parse().map_err(|_| format!("{text} is not a number in range").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<Option<Options>> {
        from(arguments.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn each_option_is_read() {
        let text = "--keys 10,20 --vectors 0 --rounds 7 --directory /var/tmp --json";
        let options = parsed(text).expect("good options").expect("no help");
        assert_eq!(options.keys, [10, 20]);
        assert_eq!((options.vectors, options.rounds, options.json), (0, 7, true));
        assert_eq!(options.directory.to_str(), Some("/var/tmp"));
    }

    #[test]
    fn errors_name_the_argument() {
        for (text, expected) in [
            ("--keys", "--keys needs a value"),
            ("--keys ten", "ten is not a number in range"),
            ("--rivals", "no option --rivals"),
        ] {
            let error = parsed(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(parsed("--help").expect("good options").is_none());
    }
}
