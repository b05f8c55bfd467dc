//! Threads that read for streams: a bounded number, started when there is work and gone when there
//! is none.

use crate::error::{Error, Result};
use crate::panics::caught;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A thread without work goes after so long.
const IDLE: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

/// The threads of a store.
pub(crate) struct Pool(Arc<Crew>);

struct Crew {
    state: Mutex<State>,
    work: Condvar,
    most: usize,
}

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(most: usize) -> Self {
        let state = State { jobs: VecDeque::new(), threads: 0, idle: 0, closed: false };
        Self(Arc::new(Crew { state: Mutex::new(state), work: Condvar::new(), most }))
    }

    /// Has a thread do this, as soon as one is free. Fails when there is none and none can start.
    pub(crate) fn submit(&self, job: Job) -> Result<()> {
        let mut state = self.0.lock();
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle {
            drop(state);
            self.0.work.notify_one();
            return Ok(());
        }
        if state.threads < self.0.most {
            let crew = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("nuthatch-store".to_owned());
            match thread.spawn(move || crew.run()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    state.jobs.pop_back();
                    return Err(Error::io("".as_ref(), "start a thread", error));
                }
                // The threads that are there will come to it.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

impl Crew {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run without the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // Jobs answer for their own panics; what is left must not end the thread uncounted.
                let _ = caught("read", job);
                state = self.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let waited = self.work.wait_timeout(state, IDLE);
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
