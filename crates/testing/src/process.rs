//! Child processes that stop and continue.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::process::Child;

/// Stops a child process and waits until it has stopped: a signal is only sent when the system call
/// returns, and the threads of the process run on for a moment.
///
/// # Panics
///
/// If the process has ended.
pub fn stop(child: &Child) {
    let process = Pid::from_child(child);
    kill_process(process, Signal::STOP).expect("a child that was not waited for");
    let waited = waitpid(Some(process), WaitOptions::UNTRACED).expect("a child");
    assert!(waited.is_some_and(|(_, status)| status.stopped()), "the child has ended");
}

/// Lets a child process continue that [`stop`] has stopped.
///
/// # Panics
///
/// If the process has ended and was waited for.
pub fn proceed(child: &Child) {
    kill_process(Pid::from_child(child), Signal::CONT).expect("a child that was not waited for");
}
