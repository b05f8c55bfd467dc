//! A place for what is read piece by piece: by one task or thread at a time, until it is over.

use crate::failure::{Failure, Outcome};
use crate::own::{Own, check_process};
use crate::runtime::generation;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The place. Whatever ends the reading, what was read from is dropped at once.
pub(crate) struct Slot<S> {
    /// The process that reads: a child made by `fork` must not.
    generation: u32,
    state: Mutex<State<S>>,
    /// What it is for messages.
    what: &'static str,
}

enum State<S> {
    Here(Own<S>),
    /// Somebody reads from it.
    Away,
    /// With a reason: whoever asks is told. Without: there is no more.
    Over(Option<Failure>),
}

/// What is read from, until it is given back. Dropped instead, the reading is over.
pub(crate) struct Taken<S> {
    slot: Arc<Slot<S>>,
    thing: Option<Own<S>>,
}

impl<S> Slot<S> {
    pub(crate) fn new(what: &'static str, thing: S) -> Self {
        let state = Mutex::new(State::Here(Own::new(thing)));
        Self { generation: generation(), state, what }
    }

    /// Something to read from; `None` where there is no more.
    pub(crate) fn take(self: &Arc<Self>) -> Outcome<Option<Taken<S>>> {
        check_process(self.generation, self.what)?;
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Away) {
            State::Here(thing) => Ok(Some(Taken { slot: Arc::clone(self), thing: Some(thing) })),
            State::Away => {
                let message = format!("the {} is being read by somebody else", self.what);
                Err(Failure::argument(message))
            }
            State::Over(reason) => {
                *state = State::Over(reason.clone());
                reason.map_or(Ok(None), Err)
            }
        }
    }

    /// Ends the reading; for a reason that whoever asks is told, or for none. Answers whether it
    /// was not over before.
    pub(crate) fn end(&self, reason: Option<Failure>) -> bool {
        if check_process(self.generation, self.what).is_err() {
            return false;
        }
        let mut state = self.lock();
        if matches!(&*state, State::Over(_)) {
            return false;
        }
        let before = std::mem::replace(&mut *state, State::Over(reason));
        drop(state);
        drop(before);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // What is behind the lock is whole after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Taken<S> {
    pub(crate) fn get(&mut self) -> Outcome<&mut S> {
        self.thing.as_mut().and_then(Own::here_mut).ok_or_else(Failure::lost)
    }

    /// There is more to read.
    pub(crate) fn give_back(mut self) {
        let mut state = self.slot.lock();
        if matches!(&*state, State::Away)
            && let Some(thing) = self.thing.take()
        {
            *state = State::Here(thing);
        }
    }
}

impl<S> Drop for Taken<S> {
    fn drop(&mut self) {
        if let Some(thing) = self.thing.take() {
            drop(thing);
            self.slot.end(None);
        }
    }
}
