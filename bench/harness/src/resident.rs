//! Memory use of this process.

/// Returns the resident memory of this process in bytes, or `None` if the system does not report
/// it.
pub fn resident_bytes() -> Option<u64> {
    status("VmRSS:")
}

/// Returns the peak resident memory of this process in bytes, or `None` if the system does not
/// report it.
pub fn peak_bytes() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
