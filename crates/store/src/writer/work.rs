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

/// The outcome of a group.
enum Outcome {
    /// The group was committed; each batch has its own result.
    Committed(Vec<Result<Written>>),
    /// Nothing was committed; with the index of the batch that is the cause, if one is.
    Failed(Error, Option<usize>),
}

impl Worker {
    pub(super) fn new(store: Store, queue: Arc<Queue>, options: BatchOptions) -> Self {
        Self { store, queue, options }
    }

    pub(super) fn run(self) {
        // However this thread ends, all waiting batches get a result.
        let _end = EndOnDrop(&self.queue);
        while let Some(items) = self.queue.take(self.options.group) {
            // The caller's clock may panic. The transaction is dropped then, and no batch of the
            // group without a result was committed.
            if let Err(error) = caught("write", || self.write(&items)) {
                fail_all(&items, error, None);
            }
        }
    }

    /// Writes a group, and sets the results of its batches.
    fn write(&self, items: &[Item]) {
        let outcome = loop {
            match self.commit(items) {
                Outcome::Failed(Error::Full { .. }, _) if self.grown() => {}
                outcome => break outcome,
            }
        };
        match outcome {
            Outcome::Committed(results) => {
                for (item, result) in items.iter().zip(results) {
                    item.slot.complete(result);
                }
            }
            // A half may fit even if the whole group does not.
            Outcome::Failed(Error::Full { .. } | Error::TransactionFull, _)
                if items.len() > 1 && self.options.failure == Failure::Alone =>
            {
                let (first, second) = items.split_at(items.len() / 2);
                self.write(first);
                self.write(second);
            }
            Outcome::Failed(error, cause) => fail_all(items, error, cause),
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
        let mut results = Vec::with_capacity(items.len());
        for (nth, item) in items.iter().enumerate() {
            match self.apply(&mut txn, item) {
                Err(error) if !self.fails_alone(&error) => {
                    return Outcome::Failed(error, Some(nth));
                }
                result => results.push(result.map(|(deleted, sequence)| Written {
                    transaction,
                    sequence,
                    deleted,
                })),
            }
        }
        match txn.commit() {
            Ok(_) => Outcome::Committed(results),
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

    /// Returns whether an error concerns only one batch, so that the transaction continues without
    /// it.
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

/// Fails all batches of a group: the cause with the error, the others with [`Error::Group`].
fn fail_all(items: &[Item], error: Error, cause: Option<usize>) {
    let shared = Arc::new(error.copy());
    for (nth, item) in items.iter().enumerate() {
        if Some(nth) != cause {
            item.slot.complete(Err(Error::Group(Arc::clone(&shared))));
        }
    }
    if let Some(item) = cause.and_then(|cause| items.get(cause)) {
        item.slot.complete(Err(error));
    }
}

struct EndOnDrop<'q>(&'q Queue);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
