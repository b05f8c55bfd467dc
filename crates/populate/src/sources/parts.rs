//! Reading of the parts of a source by several threads.

use super::{MakeReceiver, RowReceiver, Stop};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

/// Reads parts on up to `readers` threads, each with a receiver of its own. `read` gets the state
/// of its thread, which begins as the default.
pub(super) fn read_parts<P: Send, S: Default>(
    parts: VecDeque<P>,
    readers: usize,
    make_receiver: &MakeReceiver<'_>,
    read: impl Fn(&P, &mut S, &mut dyn RowReceiver) -> Result<(), Stop> + Sync,
) -> Result<(), Stop> {
    let readers = readers.min(parts.len()).max(1);
    let queue = Mutex::new(parts);
    let next = || queue.lock().ok().and_then(|mut parts| parts.pop_front());
    let read_all = || -> Result<(), Stop> {
        let (mut receiver, mut state) = (make_receiver(), S::default());
        while let Some(part) = next() {
            let result = read(&part, &mut state, &mut *receiver);
            if result.is_err() {
                // The other threads end after their part.
                while next().is_some() {}
                return result;
            }
        }
        receiver.end_part()
    };
    let mut results = thread::scope(|scope| {
        let threads: Vec<_> = (0..readers).map(|_| scope.spawn(read_all)).collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect::<Vec<_>>()
    });
    // A fault says more than that a receiver was stopped because of it.
    results.sort_by_key(|result| match result {
        Err(Stop::Fault(_)) => 0,
        Err(Stop::Enough) => 1,
        Ok(()) => 2,
    });
    results.into_iter().next().unwrap_or(Ok(()))
}
