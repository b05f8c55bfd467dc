//! The thread that writes groups of batches.

use super::ack::Written;
use super::queue::{Item, Queue};
use super::{BatchOptions, Failure};
use crate::error::{Error, Result};
use crate::panics::caught;
use crate::read::Read;
use crate::store::Store;
use crate::write::WriteTxn;
use std::sync::Arc;

pub(super) struct Worker {
    store: Store,
    queue: Arc<Queue>,
    options: BatchOptions,
}

/// What became of a group.
enum Outcome {
    /// It was committed; each batch has an answer of its own.
    Committed(Vec<Result<Written>>),
    /// Nothing of it was; where one batch is the cause, which.
    Failed(Error, Option<usize>),
}

impl Worker {
    pub(super) fn new(store: Store, queue: Arc<Queue>, options: BatchOptions) -> Self {
        Self { store, queue, options }
    }

    pub(super) fn run(self) {
        // Whatever ends this thread, nobody waits for answers that will not come.
        let _end = End(&self.queue);
        while let Some(items) = self.queue.take(self.options.group) {
            // A clock of the caller may panic. The transaction is dropped then, and nothing of the
            // group that has no answer yet was committed.
            if let Err(error) = caught("write", || self.write(&items)) {
                fail(&items, error, None);
            }
        }
    }

    /// Writes a group and answers.
    fn write(&self, items: &[Item]) {
        let outcome = loop {
            match self.commit(items) {
                Outcome::Failed(Error::Full { .. }, _) if self.grown() => {}
                outcome => break outcome,
            }
        };
        match outcome {
            Outcome::Committed(answers) => {
                for (item, answer) in items.iter().zip(answers) {
                    item.slot.answer(answer);
                }
            }
            // Half of it may have room where all has none.
            Outcome::Failed(Error::Full { .. } | Error::TransactionFull, _)
                if items.len() > 1 && self.options.failure == Failure::Alone =>
            {
                let (first, second) = items.split_at(items.len() / 2);
                self.write(first);
                self.write(second);
            }
            Outcome::Failed(error, cause) => fail(items, error, cause),
        }
    }

    fn grown(&self) -> bool {
        self.store.0.environment.grow_after_full().unwrap_or(false)
    }

    fn commit(&self, items: &[Item]) -> Outcome {
        let mut txn = match self.store.write_with(self.options.durability) {
            Ok(txn) => txn,
            Err(error) => return Outcome::Failed(error, None),
        };
        let transaction = txn.id();
        let mut answers = Vec::with_capacity(items.len());
        for (nth, item) in items.iter().enumerate() {
            match self.apply(&mut txn, item) {
                Err(error) if !self.fails_alone(&error) => {
                    return Outcome::Failed(error, Some(nth));
                }
                answer => answers.push(answer.map(|(deleted, sequence)| Written {
                    transaction,
                    sequence,
                    deleted,
                })),
            }
        }
        match txn.commit() {
            Ok(_) => Outcome::Committed(answers),
            Err(error) => Outcome::Failed(error, None),
        }
    }

    fn apply(&self, txn: &mut WriteTxn<'_>, item: &Item) -> Result<(u64, u64)> {
        if self.options.failure == Failure::Group || !item.batch.can_fail_halfway() {
            let deleted = item.batch.apply(txn)?;
            return Ok((deleted, txn.sequence()?));
        }
        let mut nested = txn.nested()?;
        let deleted = item.batch.apply(&mut nested)?;
        Ok((deleted, nested.commit()?))
    }

    /// Whether an error is about one batch, so that the transaction goes on without it.
    fn fails_alone(&self, error: &Error) -> bool {
        self.options.failure == Failure::Alone
            && matches!(
                error,
                Error::Length { .. }
                    | Error::Table { .. }
                    | Error::Unordered { .. }
                    | Error::ConditionUnmet { .. }
                    | Error::Decode { .. }
            )
    }
}

/// Tells all batches of a group that it failed: the one that is the cause why, the others of it.
fn fail(items: &[Item], error: Error, cause: Option<usize>) {
    let shared = Arc::new(error.copy());
    for (nth, item) in items.iter().enumerate() {
        if Some(nth) != cause {
            item.slot.answer(Err(Error::Group(Arc::clone(&shared))));
        }
    }
    if let Some(item) = cause.and_then(|cause| items.get(cause)) {
        item.slot.answer(Err(error));
    }
}

struct End<'q>(&'q Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
