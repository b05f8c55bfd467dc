//! Processor cores and processor time.

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

/// Processor time of a thread or process, in whole kernel clock ticks (10 ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl Usage {
    pub(crate) fn of_this_thread() -> io::Result<Self> {
        Self::read("/proc/thread-self/stat")
    }

    /// Returns the processor time of a process, including all of its threads.
    pub(crate) fn of_process(pid: u32) -> io::Result<Self> {
        Self::read(&format!("/proc/{pid}/stat"))
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }

    fn read(path: &str) -> io::Result<Self> {
        let text =
            fs::read_to_string(path).map_err(|e| io::Error::new(e.kind(), named(path, &e)))?;
        Self::parse(&text).ok_or_else(|| io::Error::other(format!("{path}: not as proc(5) says")))
    }

    /// Parses fields 14 and 15 of `stat` in proc(5). Field 2 is a name in parentheses that may
    /// contain any characters.
    fn parse(stat: &str) -> Option<Self> {
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let tick = Duration::from_secs(1) / u32::try_from(clock_ticks_per_second()).ok()?;
        let time = |ticks: u64| Some(tick * u32::try_from(ticks).ok()?);
        Some(Self { user: time(ticks()?)?, system: time(ticks()?)? })
    }
}

/// Returns the resident memory of a process in bytes.
pub(crate) fn resident_bytes(pid: u32) -> io::Result<u64> {
    let path = format!("/proc/{pid}/statm");
    let text = fs::read_to_string(&path).map_err(|e| io::Error::new(e.kind(), named(&path, &e)))?;
    let pages = text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages
        .map(|pages| pages * page_size() as u64)
        .ok_or_else(|| io::Error::other(format!("{path}: not as proc(5) says")))
}

fn named(path: &str, error: &io::Error) -> String {
    format!("{path}: {error}")
}

/// Returns the processor time of this thread, with nanosecond resolution.
pub(crate) fn time_of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Both fields are non-negative.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Pins this thread to one core.
pub(crate) fn pin(number: usize) -> io::Result<()> {
    if number >= CpuSet::MAX_CPU {
        return Err(io::Error::other(format!("there is no core {number}")));
    }
    let mut cores = CpuSet::new();
    cores.set(number);
    sched_setaffinity(None, &cores)
        .map_err(|error| io::Error::new(error.kind(), format!("core {number}: {error}")))
}

/// Lets the kernel wake this thread without the delay by which it combines timers.
pub(crate) fn wake_in_time() -> io::Result<()> {
    Ok(set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// Runs `start` on one core, then restores the previous cores of this thread. Processes that
/// `start` spawns stay on that core.
pub(crate) fn on_core<T>(number: usize, start: impl FnOnce() -> T) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    pin(number)?;
    let result = start();
    sched_setaffinity(None, &before)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_after_any_name() {
        let stat = "71 (a ) b) S 1 71 71 0 -1 4194560 10 0 0 0 250 31 7 9 20 0 4 0 17";
        let second = |hundredths: u64| Duration::from_millis(hundredths * 10);
        let expected = Usage { user: second(250), system: second(31) };
        assert_eq!(clock_ticks_per_second(), 100);
        assert_eq!(Usage::parse(stat), Some(expected));
        assert_eq!(Usage::parse("71 (a"), None);
        assert_eq!(Usage::parse("71 (a) S 1 2"), None);
    }

    #[test]
    fn this_process_has_memory_and_time() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).is_ok_and(|bytes| bytes > 0));
        assert!(Usage::of_process(pid).is_ok());
        assert!(Usage::of_process(u32::MAX).is_err_and(|e| e.to_string().contains("/proc/")));
    }

    #[test]
    fn errors_name_a_missing_core() {
        assert!(pin(1 << 20).is_err_and(|e| e.to_string().contains("1048576")));
    }
}
