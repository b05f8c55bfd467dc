//! The queues of work that waits for a thread.

use crate::chunks::Chunks;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(super) type Job = Box<dyn FnOnce(&Chunks) + Send>;

pub(super) struct Queue {
    pub(super) jobs: Mutex<Jobs>,
    pub(super) job_added: Condvar,
    /// Notified when work that puts has ended.
    put_ended: Condvar,
}

/// Work that waits for a thread. A put may wait for another thread or process that reclaims a
/// segment; so puts never occupy all threads, and a read does not wait behind them.
pub(super) struct Jobs {
    reads: VecDeque<(u64, Job)>,
    puts: VecDeque<(u64, Job)>,
    /// Number of jobs that were queued: older ones run first.
    count: u64,
    /// Numbers of the puts that threads work on.
    putting: Vec<u64>,
    /// Maximum number of threads that work on puts.
    max_putting: usize,
    pub(super) is_closed: bool,
}

/// A job that a thread works on. Passed to [`Queue::ended`] afterwards.
#[derive(Clone, Copy)]
pub(super) enum Started {
    Read,
    /// A put, with its number.
    Put(u64),
}

/// The queue of a job.
#[derive(Clone, Copy)]
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
    fn take(&mut self) -> Option<(Started, Job)> {
        let may_put = self.putting.len() < self.max_putting;
        let put = self.puts.front().filter(|_| may_put).map(|(number, _)| *number);
        let read = self.reads.front().map(|(number, _)| *number);
        let is_put = put.is_some_and(|put| read.is_none_or(|read| put < read));
        if !is_put {
            return self.reads.pop_front().map(|(_, job)| (Started::Read, job));
        }
        let (number, job) = self.puts.pop_front()?;
        self.putting.push(number);
        Some((Started::Put(number), job))
    }

    /// Returns the number of the oldest put that is queued or running.
    fn oldest_put(&self) -> Option<u64> {
        let queued = self.puts.front().map(|(number, _)| *number);
        self.putting.iter().copied().chain(queued).min()
    }
}

impl Queue {
    pub(super) fn new(threads: usize) -> Self {
        let jobs = Jobs {
            reads: VecDeque::new(),
            puts: VecDeque::new(),
            count: 0,
            putting: Vec::new(),
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
    pub(super) fn next(&self) -> Option<(Started, Job)> {
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

    /// Waits until all puts that were queued before the call have ended.
    pub(super) fn wait_for_puts(&self) {
        let mut jobs = lock(&self.jobs);
        let last = jobs.count;
        while jobs.oldest_put().is_some_and(|number| number <= last) {
            jobs = self.put_ended.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a job has ended.
    pub(super) fn ended(&self, job: Started) {
        if let Started::Put(number) = job {
            lock(&self.jobs).putting.retain(|putting| *putting != number);
            self.put_ended.notify_all();
            // Wakes all threads: when the queue is closed, each of them has to end.
            self.job_added.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Waiting for all puts would not end while other threads keep adding some.
    #[test]
    fn waiting_for_puts_ignores_those_that_are_queued_later() {
        let (queue, has_waited) = (Queue::new(2), AtomicBool::new(false));
        let add = || queue.add(Lane::Puts, Box::new(|_| ()));
        let start = || queue.next().map(|(started, _)| started).expect("a put");
        add();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                queue.wait_for_puts();
                has_waited.store(true, Ordering::Release);
            });
            while !has_waited.load(Ordering::Acquire) {
                let started = start();
                add();
                queue.ended(started);
                std::thread::yield_now();
            }
        });
        assert!(lock(&queue.jobs).oldest_put().is_some(), "a put is queued");
    }

    #[test]
    fn waiting_for_puts_waits_for_those_that_run() {
        let (queue, has_ended) = (Queue::new(3), AtomicBool::new(false));
        for _ in 0..2 {
            queue.add(Lane::Puts, Box::new(|_| ()));
        }
        let (older, newer) = (queue.next().expect("a put").0, queue.next().expect("a put").0);
        queue.ended(newer);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                has_ended.store(true, Ordering::Release);
                queue.ended(older);
            });
            queue.wait_for_puts();
            assert!(has_ended.load(Ordering::Acquire), "the older put has ended");
        });
    }
}
