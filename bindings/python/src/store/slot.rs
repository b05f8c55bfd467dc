//! Exclusive access to a source that is read in pieces, by one task or thread at a time.

use crate::failure::{Failure, Outcome};
use crate::own::{Own, check_process};
use crate::runtime::generation;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Holds a source until the reading ends, which drops the source at once.
pub(crate) struct Slot<S> {
    /// The process that reads. A child made by `fork` must not use the source.
    generation: u32,
    state: Mutex<State<S>>,
    /// Name of the source in messages.
    what: &'static str,
}

enum State<S> {
    Here(Own<S>),
    /// A task or thread has the source.
    Away,
    /// The reading has ended: with an error that each caller receives, or because no more data is
    /// left.
    Over(Option<Failure>),
}

/// A source that a reader took. If it is dropped instead of being returned, the reading ends.
pub(crate) struct Taken<S> {
    slot: Arc<Slot<S>>,
    thing: Option<Own<S>>,
}

impl<S> Slot<S> {
    pub(crate) fn new(what: &'static str, thing: S) -> Self {
        let state = Mutex::new(State::Here(Own::new(thing)));
        Self { generation: generation(), state, what }
    }

    /// Takes the source; returns `None` if no more data is left.
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

    /// Ends the reading, with an error for later callers or without one. Returns whether it had not
    /// ended before.
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
        // A panic cannot leave the state invalid: each statement completes a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Taken<S> {
    pub(crate) fn get(&mut self) -> Outcome<&mut S> {
        self.thing.as_mut().and_then(Own::here_mut).ok_or_else(Failure::lost)
    }

    /// Returns the source to the slot, for the next read.
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
