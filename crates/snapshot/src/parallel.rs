//! Parallel execution with results in order.

use crate::error::Result;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls `work` on every item on `threads` threads. Returns the results in the order of the items.
/// Threads take items in order. After an error, no further items are started.
///
/// # Errors
/// Returns the error of the earliest item that failed.
pub(crate) fn map<T, R>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>>
where
    T: Send,
    R: Send,
{
    map_with(threads, items, || (), |(), item| work(item))
}

/// Calls `work` on every item, as [`map`], with a state that each thread creates with `start`.
///
/// # Errors
/// Returns the same errors as `map`.
pub(crate) fn map_with<T, R, S>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> Result<R> + Sync,
) -> Result<Vec<R>>
where
    T: Send,
    R: Send,
{
    let items = Mutex::new(items.into_iter().enumerate());
    let failed = AtomicBool::new(false);
    let run = || {
        let mut state = start();
        let mut results = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let next = items.lock().expect("no panic while items are taken").next();
            let Some((number, item)) = next else { break };
            let result = work(&mut state, item);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.push((number, result));
        }
        results
    };
    let mut results = if threads <= 1 {
        run()
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
        })
    };
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let doubled = map(4, 0..1000, |n| Ok(n * 2)).expect("no errors");
        assert!(doubled.into_iter().eq((0..1000).map(|n| n * 2)));
    }

    #[test]
    fn the_earliest_error_is_returned() {
        let work = |n: u64| if n % 10 == 7 { Err(Error::limit("n", 0, n)) } else { Ok(()) };
        let Err(Error::Limit(limit)) = map(3, 0..100, work) else { panic!("an error") };
        assert_eq!(limit.found, 7);
    }
}
