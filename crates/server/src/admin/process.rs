//! Metrics of this process.

use crate::state::process::Process;
use nuthatch_listen::MetricsText;
use rustix::process::{Resource, getrlimit};
use std::fs;

/// Adds the metrics of this process, under the names that exporters use by convention.
pub(super) fn write(text: &mut MetricsText) {
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
