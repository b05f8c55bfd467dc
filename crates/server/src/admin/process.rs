//! Metrics of this process.

use super::exposition::Page;
use crate::state::process::Process;
use rustix::process::{Resource, getrlimit};
use std::fs;

/// Adds the metrics of this process, under the names that exporters use by convention.
pub(super) fn tell(page: &mut Page) {
    let process = Process::now();
    let process = process.as_ref();
    let files = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    page.counter("process_cpu_seconds", "Processor time, of user and system.")
        .known(process.map(|process| process.user_seconds + process.system_seconds));
    let help = "Memory of the process that is resident, shared pages included.";
    page.gauge("process_resident_memory_bytes", help)
        .known(process.map(|process| process.resident_bytes));
    page.gauge("process_start_time_seconds", "When it started, since 1970.")
        .known(process.map(|process| process.start_seconds));
    page.gauge("process_open_fds", "Open file descriptors.").known(files);
    page.gauge("process_max_fds", "File descriptors there may be.")
        .known(getrlimit(Resource::Nofile).current);
}
