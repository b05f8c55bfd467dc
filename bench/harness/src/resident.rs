//! How much memory this process has.

/// Bytes of this process that are in memory now; nothing where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    status("VmRSS:")
}

/// The most bytes of this process that ever were in memory; nothing where the system does not tell.
pub fn peak_bytes() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
