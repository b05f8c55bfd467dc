//! The queues of work that waits for a thread.

use crate::chunks::Chunks;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(super) type Job = Box<dyn FnOnce(&Chunks) + Send>;

pub(super) struct Queue {
    pub(super) jobs: Mutex<Jobs>,
    pub(super) job_added: Condvar,
    /// Notified when work that puts has ended.
    pub(super) put_ended: Condvar,
}

/// Work that waits for a thread. A put may wait for another thread or process that reclaims a
/// segment; so puts never occupy all threads, and a read does not wait behind them.
pub(super) struct Jobs {
    reads: VecDeque<(u64, Job)>,
    pub(super) puts: VecDeque<(u64, Job)>,
    /// Number of jobs that were queued: older ones run first.
    count: u64,
    /// Threads that work on puts.
    pub(super) putting: usize,
    /// Maximum number of threads that work on puts.
    max_putting: usize,
    pub(super) is_closed: bool,
}

/// The queue of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Reads,
    Puts,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jobs {
    /// Takes the oldest job that may begin.
    fn take(&mut self) -> Option<(Lane, Job)> {
        let may_put = self.putting < self.max_putting;
        let put = self.puts.front().filter(|_| may_put).map(|(number, _)| *number);
        let read = self.reads.front().map(|(number, _)| *number);
        let is_put = put.is_some_and(|put| read.is_none_or(|read| put < read));
        let lane = if is_put { Lane::Puts } else { Lane::Reads };
        let queue = if is_put { &mut self.puts } else { &mut self.reads };
        let (_, job) = queue.pop_front()?;
        self.putting += usize::from(is_put);
        Some((lane, job))
    }
}

impl Queue {
    pub(super) fn new(threads: usize) -> Self {
        let jobs = Jobs {
            reads: VecDeque::new(),
            puts: VecDeque::new(),
            count: 0,
            putting: 0,
            max_putting: (threads - 1).max(1),
            is_closed: false,
        };
        Self { jobs: Mutex::new(jobs), job_added: Condvar::new(), put_ended: Condvar::new() }
    }

    pub(super) fn add(&self, lane: Lane, job: Job) {
        let mut jobs = lock(&self.jobs);
        jobs.count += 1;
        let entry = (jobs.count, job);
        match lane {
            Lane::Reads => jobs.reads.push_back(entry),
            Lane::Puts => jobs.puts.push_back(entry),
        }
        drop(jobs);
        self.job_added.notify_one();
    }

    /// Waits for a job. Returns `None` when the queue is closed and empty.
    pub(super) fn next(&self) -> Option<(Lane, Job)> {
        let mut jobs = lock(&self.jobs);
        loop {
            if let Some(job) = jobs.take() {
                return Some(job);
            }
            if jobs.is_closed && jobs.puts.is_empty() {
                return None;
            }
            jobs = self.job_added.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a job has ended.
    pub(super) fn ended(&self, lane: Lane) {
        if lane == Lane::Puts {
            lock(&self.jobs).putting -= 1;
            self.put_ended.notify_all();
            // Wakes all threads: when the queue is closed, each of them has to end.
            self.job_added.notify_all();
        }
    }
}
