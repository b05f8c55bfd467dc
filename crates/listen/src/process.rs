//! Statistics of this process, as the operating system reports them.

use crate::exposition::MetricsText;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use std::fs;

/// Adds the version of this program, and the metrics of its process under the names that exporters
/// use by convention.
pub fn write_process(text: &mut MetricsText) {
    let version = env!("CARGO_PKG_VERSION");
    text.gauge("nuthatch_build_info", "Always 1; the label is the version of the server.")
        .sample(&[("version", version)], 1);
    let process = Process::now();
    let process = process.as_ref();
    let files = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    text.counter("process_cpu_seconds", "User and system CPU time.")
        .sample_if_known(process.map(|process| process.user_seconds + process.system_seconds));
    let help = "Resident memory of the process, including shared pages.";
    text.gauge("process_resident_memory_bytes", help)
        .sample_if_known(process.map(|process| process.resident_bytes));
    text.gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.")
        .sample_if_known(process.map(|process| process.start_seconds));
    text.gauge("process_open_fds", "Open file descriptors.").sample_if_known(files);
    text.gauge("process_max_fds", "Maximum number of open file descriptors.")
        .sample_if_known(getrlimit(Resource::Nofile).current);
}

/// Fields of `/proc/self/stat` and `/proc/stat`.
#[derive(Debug, PartialEq)]
pub struct Process {
    /// Processor time in user mode.
    pub user_seconds: f64,
    /// Processor time in the kernel.
    pub system_seconds: f64,
    /// Resident memory, including shared pages.
    pub resident_bytes: u64,
    /// When the process started, in seconds since 1970.
    pub start_seconds: f64,
}

impl Process {
    /// Parses the text of both files, with the ticks of a second and the bytes of a page. Returns
    /// `None` for an unexpected format.
    fn parse(process: &str, system: &str, ticks: u64, page_len: u64) -> Option<Self> {
        // The name in parentheses may contain anything, so fields are counted after it.
        let (_, fields) = process.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // Fields have the numbers of proc(5). The first one here is 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        let boot_seconds: u64 = boot.trim().parse().ok()?;
        let seconds = |count: u64| count as f64 / ticks as f64;
        Some(Self {
            user_seconds: seconds(field(14)?),
            system_seconds: seconds(field(15)?),
            start_seconds: boot_seconds as f64 + seconds(field(22)?),
            resident_bytes: field(24)? * page_len,
        })
    }

    /// Reads the statistics of this process. Returns `None` if the system does not provide them.
    pub fn now() -> Option<Self> {
        let read = |path| fs::read_to_string(path).ok();
        let (process, system) = (read("/proc/self/stat")?, read("/proc/stat")?);
        Self::parse(&process, &system, clock_ticks_per_second(), page_size() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_after_any_process_name() {
        let process = "77 (a b) c) S 1 77 77 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 5 0 1000 9 30 \
                       18446744073709551615";
        let system = "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n";
        let expected = Process {
            user_seconds: 2.5,
            system_seconds: 0.5,
            resident_bytes: 30 * 4096,
            start_seconds: 1_700_000_010.0,
        };
        assert_eq!(Process::parse(process, system, 100, 4096), Some(expected));
        assert_eq!(Process::parse("77 (a) S 1", system, 100, 4096), None);
        assert_eq!(Process::parse(process, "cpu 1\n", 100, 4096), None);
    }

    #[test]
    fn proc_describes_this_process() {
        let process = Process::now().expect("statistics of this process");
        assert!(process.resident_bytes > 0 && process.start_seconds > 1e9, "{process:?}");
    }
}
