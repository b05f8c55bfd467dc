//! A bounded pool of threads that read for streams. Threads start when there is work and end when
//! they are idle.

use crate::error::{Error, Result};
use crate::panics::caught;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread waits for work before it ends.
const MAX_IDLE_TIME: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

/// The threads of a store.
pub(crate) struct Pool(Arc<PoolThreads>);

struct PoolThreads {
    state: Mutex<State>,
    work: Condvar,
    max_threads: usize,
}

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl Pool {
    pub(crate) fn new(max_threads: usize) -> Self {
        let state = State { jobs: VecDeque::new(), threads: 0, idle: 0, is_closed: false };
        Self(Arc::new(PoolThreads { state: Mutex::new(state), work: Condvar::new(), max_threads }))
    }

    /// Runs a job on a thread, as soon as one is idle. Returns an error if there is no thread and
    /// none can be started.
    pub(crate) fn submit(&self, job: Job) -> Result<()> {
        let mut state = self.0.lock();
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle {
            drop(state);
            self.0.work.notify_one();
            return Ok(());
        }
        if state.threads < self.0.max_threads {
            let pool = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("nuthatch-store".to_owned());
            match thread.spawn(move || pool.run()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    state.jobs.pop_back();
                    return Err(Error::io("".as_ref(), "start a thread", error));
                }
                // An existing thread will run the job.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.work.notify_all();
    }
}

impl PoolThreads {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run without the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // Jobs handle their own panics. Other panics must not end the thread without
                // counting it.
                let _ = caught("read", job);
                state = self.lock();
                continue;
            }
            if state.is_closed {
                break;
            }
            state.idle += 1;
            let waited = self.work.wait_timeout(state, MAX_IDLE_TIME);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}
