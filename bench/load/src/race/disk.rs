//! Systems that store items on disk: their counters, and how extstore is filled.

use crate::address::Address;
use crate::error::Error;
use crate::keys::{Values, key};
use crate::race::systems::System;
use crate::race::works::Data;
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Counters of a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Requests that looked up a key.
    pub(crate) lookups: u64,
    /// Lookups whose item was on disk.
    pub(crate) disk_hits: u64,
    /// Reads of the disk, or of its pages in the page cache.
    pub(crate) disk_reads: u64,
    /// Bytes that the process has read from devices.
    pub(crate) device_bytes: u64,
}

impl Counters {
    /// Reads the counters of a server, or returns `None` if the system has no disk.
    pub(crate) fn of(system: System, address: &Address, pid: u32) -> Result<Option<Self>, Error> {
        let (request, names) = match system {
            System::Extstore => {
                let names = ["cmd_get", "", "get_extstore", "extstore_objects_read"];
                ("stats\r\nquit\r\n", names)
            }
            System::NuthatchDisk => {
                let names = ["keyspace_hits", "keyspace_misses", "disk_hits", "disk_reads"];
                ("INFO stats\r\nINFO disk\r\nQUIT\r\n", names)
            }
            _ => return Ok(None),
        };
        let mut stream = connect(address)?;
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let [lookups, more_lookups, disk_hits, disk_reads] = names.map(|name| value(&text, name));
        let (lookups, device_bytes) = (lookups + more_lookups, device_bytes(pid)?);
        Ok(Some(Self { lookups, disk_hits, disk_reads, device_bytes }))
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            lookups: self.lookups.saturating_sub(earlier.lookups),
            disk_hits: self.disk_hits.saturating_sub(earlier.disk_hits),
            disk_reads: self.disk_reads.saturating_sub(earlier.disk_reads),
            device_bytes: self.device_bytes.saturating_sub(earlier.device_bytes),
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            lookups: self.lookups + other.lookups,
            disk_hits: self.disk_hits + other.disk_hits,
            disk_reads: self.disk_reads + other.disk_reads,
            device_bytes: self.device_bytes + other.device_bytes,
        }
    }
}

/// Returns the number of a line `STAT name number` or `name:number`, or 0 if there is none.
fn value(text: &str, name: &str) -> u64 {
    let number = |line: &str| {
        let line = line.strip_prefix("STAT ").unwrap_or(line);
        let number = line.strip_prefix(name)?.strip_prefix([' ', ':'])?;
        number.trim().parse().ok()
    };
    if name.is_empty() { 0 } else { text.lines().find_map(number).unwrap_or(0) }
}

fn connect(address: &Address) -> io::Result<TcpStream> {
    match address {
        Address::Tcp(address) => TcpStream::connect(address),
        Address::Unix(path) => Err(io::Error::other(format!("{}: not over TCP", path.display()))),
    }
}

/// Bytes that are stored before the next pause.
const STEP_BYTES: usize = 256 << 10;

/// Duration of a pause; and the maximum number of pauses after a step while the server writes.
const PAUSE: Duration = Duration::from_millis(2);
const MAX_PAUSES: u32 = 500;

/// Duration of a pause after a step that evicted items, in which the server moves memory between
/// slab classes.
const EVICTION_PAUSE: Duration = Duration::from_millis(20);

/// Number of times that missing keys are stored.
const PASSES: u32 = 3;

/// Fills extstore in small steps. After each step it waits until the server writes no more: when it
/// is filled faster than it writes, it evicts most of the items. Then stores missing keys again, if
/// between 0.1 % and 10 % of the keys are missing: if more are, the headers of all items do not fit
/// in memory. Returns the number of stored keys.
pub(crate) fn fill_extstore(
    address: &Address,
    data: Data,
    stop: &AtomicBool,
) -> Result<u64, Error> {
    let mut connection =
        Filler { stream: BufReader::new(connect(address)?), line: String::new(), evicted: 0 };
    let values = Values::new(data.value_bytes);
    let mut bytes = Vec::new();
    let mut stored = 0;
    for _ in 0..PASSES {
        for number in 0..data.keys {
            let name = key(number);
            // `add` stores a key only if it is missing.
            bytes.extend_from_slice(b"add ");
            bytes.extend_from_slice(&name);
            write!(bytes, " 0 0 {} noreply\r\n", data.value_bytes)?;
            values.append(number, &mut bytes);
            bytes.extend_from_slice(b"\r\n");
            if bytes.len() < STEP_BYTES && number + 1 < data.keys {
                continue;
            }
            connection.stream.get_mut().write_all(&bytes)?;
            bytes.clear();
            connection.wait_until_written(stop)?;
        }
        stored = value(&connection.stats()?, "curr_items");
        let missing = u64::from(data.keys).saturating_sub(stored);
        if !(data.keys / 1000..data.keys / 10).contains(&(missing as u32)) {
            break;
        }
    }
    Ok(stored)
}

/// A connection in memcached's text protocol.
struct Filler {
    stream: BufReader<TcpStream>,
    line: String,
    /// Number of evicted items after the last step.
    evicted: u64,
}

impl Filler {
    fn stats(&mut self) -> io::Result<String> {
        self.stream.get_mut().write_all(b"stats\r\n")?;
        let mut text = String::new();
        loop {
            self.line.clear();
            if self.stream.read_line(&mut self.line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.line == "END\r\n" {
                return Ok(text);
            }
            text.push_str(&self.line);
        }
    }

    /// Waits until the counter of written objects does not change during a pause.
    fn wait_until_written(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        let mut before = None;
        for _ in 0..MAX_PAUSES {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let stats = self.stats()?;
            let written = value(&stats, "extstore_objects_written");
            if before.replace(written) != Some(written) {
                thread::park_timeout(PAUSE);
                continue;
            }
            let evicted = value(&stats, "evictions");
            if evicted > self.evicted {
                thread::park_timeout(EVICTION_PAUSE);
            }
            self.evicted = evicted;
            break;
        }
        Ok(())
    }
}

/// Interval at which pages of extstore's file are removed from the page cache.
const UNCACHE_INTERVAL: Duration = Duration::from_millis(5);

/// Runs `run` while pages of a file are removed from the page cache, so that a server that reads
/// through that cache does not use memory beyond its budget. Pages that are not written yet stay.
pub(crate) fn without_page_cache<T>(file: &Path, run: impl FnOnce() -> T) -> io::Result<T> {
    let file = File::open(file)?;
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let uncache = || {
            while !is_done.load(Ordering::Relaxed) {
                fadvise(&file, 0, None, Advice::DontNeed)?;
                thread::park_timeout(UNCACHE_INTERVAL);
            }
            io::Result::Ok(())
        };
        file.sync_data()?;
        let uncaching = scope.spawn(uncache);
        let result = run();
        is_done.store(true, Ordering::Relaxed);
        uncaching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(result)
    })
}

/// Returns the bytes that a process has read from devices.
fn device_bytes(pid: u32) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
    Ok(value(&text, "read_bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_both_servers_are_parsed() {
        let text = "STAT cmd_get 12\r\nSTAT get_extstore 7\r\n";
        assert_eq!(["cmd_get", "get_extstore", "get"].map(|name| value(text, name)), [12, 7, 0]);
        let text = "# Disk\r\ndisk_hits:5\r\ndisk_hits_2:6\r\n";
        assert_eq!(["disk_hits", ""].map(|name| value(text, name)), [5, 0]);
    }
}
