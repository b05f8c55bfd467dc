//! The snapshot of the system that serves one instead of its cache.

use crate::error::Error;
use crate::keys::{KEY_PREFIX, Values, key};
use crate::race::works::Data;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of the snapshot, which with a colon is the prefix of all keys.
pub(crate) const NAME: &str = "key";

/// Builds the snapshot with the keys and values of a workload. Returns its path.
///
/// A server removes the prefix of a request before the lookup, so the keys in the file have none.
pub(crate) fn build(nuthatch: &Path, data: Data, folder: &Path) -> Result<PathBuf, Error> {
    let (rows, snapshot) = (folder.join("rows.tsv"), folder.join("race.nut"));
    write_rows(data, BufWriter::new(File::create(&rows)?))?;
    let mut command = Command::new(nuthatch);
    command.args(["build", "--quiet", "--output"]).arg(&snapshot).arg(&rows);
    let status = command.stdin(Stdio::null()).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("nuthatch build: {status}")).into());
    }
    std::fs::remove_file(rows)?;
    Ok(snapshot)
}

fn write_rows(Data { keys, value_bytes }: Data, mut out: impl Write) -> io::Result<()> {
    let values = Values::new(value_bytes);
    let mut value = Vec::new();
    for number in 0..keys {
        value.clear();
        values.append(number, &mut value);
        out.write_all(&key(number)[KEY_PREFIX.len()..])?;
        out.write_all(b"\t")?;
        out.write_all(&value)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_keys_without_prefix_and_values() {
        let mut rows = Vec::new();
        write_rows(Data { keys: 2, value_bytes: 18 }, &mut rows).expect("memory");
        let rows = String::from_utf8(rows).expect("text");
        let rows: Vec<_> = rows.lines().filter_map(|row| row.split_once('\t')).collect();
        let [first, second] = rows[..] else { panic!("{rows:?}") };
        assert_eq!((first.0, &first.1[..16]), ("000000000000", "key:000000000000"));
        assert_eq!((second.0, &second.1[..16]), ("000000000001", "key:000000000001"));
    }
}
