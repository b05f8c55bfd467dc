//! Exclusive access to a source that is read in pieces, by one task or thread at a time.

use crate::failure::{Failure, Outcome};
use crate::runtime::{ProcessBound, check_process, generation};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Holds a source until the reading ends, which drops the source at once.
pub(crate) struct SourceSlot<S> {
    /// The process that reads. A child made by `fork` must not use the source.
    generation: u32,
    state: Mutex<SlotState<S>>,
    /// Name of the source in messages.
    what: &'static str,
}

enum SlotState<S> {
    Available(ProcessBound<S>),
    /// A task or thread has the source.
    InUse,
    /// The reading has ended: with an error that each caller receives, or because no more data is
    /// left.
    Ended(Option<Failure>),
}

/// A source that a reader took. If it is dropped instead of being returned, the reading ends.
pub(crate) struct SourceGuard<S> {
    slot: Arc<SourceSlot<S>>,
    source: Option<ProcessBound<S>>,
}

impl<S> SourceSlot<S> {
    pub(crate) fn new(what: &'static str, source: S) -> Self {
        let state = Mutex::new(SlotState::Available(ProcessBound::new(source)));
        Self { generation: generation(), state, what }
    }

    /// Takes the source; returns `None` if no more data is left.
    pub(crate) fn take(self: &Arc<Self>) -> Outcome<Option<SourceGuard<S>>> {
        check_process(self.generation, self.what)?;
        let mut state = self.lock();
        match std::mem::replace(&mut *state, SlotState::InUse) {
            SlotState::Available(source) => {
                Ok(Some(SourceGuard { slot: Arc::clone(self), source: Some(source) }))
            }
            SlotState::InUse => {
                let what = self.what;
                let message = format!(
                    "another task or thread reads this {what}: wait until its read returns, or \
                     open another {what}"
                );
                Err(Failure::argument(message))
            }
            SlotState::Ended(reason) => {
                *state = SlotState::Ended(reason.clone());
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
        if matches!(&*state, SlotState::Ended(_)) {
            return false;
        }
        let before = std::mem::replace(&mut *state, SlotState::Ended(reason));
        drop(state);
        drop(before);
        true
    }

    fn lock(&self) -> MutexGuard<'_, SlotState<S>> {
        // A panic cannot leave the state invalid: each statement completes a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> SourceGuard<S> {
    pub(crate) fn get(&mut self) -> Outcome<&mut S> {
        self.source.as_mut().and_then(ProcessBound::in_process_mut).ok_or_else(Failure::lost)
    }

    /// Returns the source to the slot, for the next read.
    pub(crate) fn give_back(mut self) {
        let mut state = self.slot.lock();
        if matches!(&*state, SlotState::InUse)
            && let Some(source) = self.source.take()
        {
            *state = SlotState::Available(source);
        }
    }
}

impl<S> Drop for SourceGuard<S> {
    fn drop(&mut self) {
        if let Some(source) = self.source.take() {
            drop(source);
            self.slot.end(None);
        }
    }
}
