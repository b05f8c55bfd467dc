//! What the kernel counts for this process, and the size of its files.

use nuthatch_bench::Result;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Counters of this process since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Time of all threads, in user mode and in the kernel, in seconds.
    pub(crate) cpu_seconds: f64,
    /// Bytes read from the device.
    pub(crate) read_bytes: u64,
    /// Bytes written to the device, or to the page cache.
    pub(crate) written_bytes: u64,
}

/// Units of the times in `/proc`, which are the same on all architectures that Nuthatch supports.
const TICKS_PER_SECOND: f64 = 100.0;

impl Usage {
    /// Reads the counters.
    pub(crate) fn now() -> Result<Self> {
        let io = fs::read_to_string("/proc/self/io")?;
        Ok(Self {
            cpu_seconds: cpu_ticks(&fs::read_to_string("/proc/self/stat")?)? / TICKS_PER_SECOND,
            read_bytes: io_field(&io, "read_bytes:")?,
            written_bytes: io_field(&io, "write_bytes:")?,
        })
    }
}

/// Returns the sum of the fields `utime` and `stime`.
fn cpu_ticks(stat: &str) -> Result<f64> {
    // The name of the program, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat has no program name")?;
    let times = fields.split_whitespace().skip(11).take(2);
    Ok(times.map(str::parse::<f64>).sum::<std::result::Result<f64, _>>()?)
}

fn io_field(io: &str, name: &str) -> Result<u64> {
    let value = io.lines().find_map(|line| line.strip_prefix(name));
    Ok(value.ok_or(format!("/proc/self/io has no {name}"))?.trim().parse()?)
}

/// Sets the peak of the resident memory to its current value.
pub(crate) fn reset_peak() -> Result<()> {
    Ok(fs::write("/proc/self/clear_refs", "5")?)
}

/// Returns the bytes that the filesystem has allocated for the files of a folder, with those of its
/// folders.
pub(crate) fn allocated_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A file may be removed at any time.
        match entry.metadata() {
            Ok(data) if data.is_dir() => bytes += allocated_bytes(&entry.path())?,
            Ok(data) => bytes += data.blocks() * 512,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_program_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4 100 0 0 0 250 50 0 0 20 0 3 0 9";
        assert_eq!(cpu_ticks(stat).expect("a number").to_bits(), 300.0_f64.to_bits());
        assert!(cpu_ticks("7").is_err());
        let io = "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n";
        assert_eq!(io_field(io, "write_bytes:").expect("a number"), 8192);
    }
}
