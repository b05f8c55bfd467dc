//! Durable writes: single transactions, and grouped writes of concurrent tasks.

use super::figures::{LMDB, OWN, StoreFigure, median};
use super::lmdb::Lmdb;
use super::nuthatch::Store;
use super::rows::{Ordered, Other, StoreOptions, StoreRows};
use crate::Result;
use nuthatch_store::Batch;
use std::collections::VecDeque;
use std::time::Instant;

/// Number of concurrent writing tasks.
const TASKS: u32 = 64;
/// Number of grouped writes for each single write.
const TIMES: u32 = 16;

/// Writes per second of each round, and all acknowledgement times in microseconds.
#[derive(Default)]
struct Samples {
    rates: Vec<f64>,
    times_us: Vec<f64>,
}

pub(super) fn race(
    options: &StoreOptions,
    rows: StoreRows,
    lmdb: &Lmdb,
    own: &Store,
    others: &[Other],
) -> Result<Vec<StoreFigure>> {
    let value = vec![b'w'; options.value_len];
    let writes = Writes { rows, value: &value, count: options.writes };
    let [mut plain, mut single, mut grouped] = [(); 3].map(|()| Samples::default());
    let mut rest: Vec<_> = others.iter().map(|_| Samples::default()).collect();
    for _ in 0..options.rounds {
        plain.alone(writes, lmdb)?;
        single.alone(writes, own)?;
        grouped.together(writes, own)?;
        for ((_, other), samples) in others.iter().zip(&mut rest) {
            samples.alone(writes, &**other)?;
        }
    }
    let base = median(&mut plain.rates);
    let alone = median(&mut single.rates);
    let figure = |work, system, samples: &mut Samples, against: Option<(&'static str, f64)>| {
        let per_second = median(&mut samples.rates);
        let against = against.map(|(name, rate)| (name, per_second / rate));
        let times = &mut samples.times_us;
        times.sort_by(f64::total_cmp);
        let p99_us = times.get(times.len() * 99 / 100).copied();
        StoreFigure { work, system, per_second, against, p99_us }
    };
    let mut figures = vec![
        figure("write", LMDB, &mut plain, None),
        figure("write", OWN, &mut single, Some((LMDB, base))),
        figure("write_64_tasks", OWN, &mut grouped, Some(("one at a time", alone))),
    ];
    for ((name, _), samples) in others.iter().zip(&mut rest) {
        figures.push(figure("write", name, samples, Some((LMDB, base))));
    }
    Ok(figures)
}

/// The rows to write.
#[derive(Clone, Copy)]
struct Writes<'v> {
    rows: StoreRows,
    value: &'v [u8],
    count: u32,
}

impl Samples {
    fn alone(&mut self, writes: Writes<'_>, system: &dyn Ordered) -> Result<()> {
        let start = Instant::now();
        for n in 0..writes.count {
            let began = Instant::now();
            system.write(writes.rows.key(n).bytes(), writes.value)?;
            self.times_us.push(began.elapsed().as_secs_f64() * 1e6);
        }
        self.rates.push(f64::from(writes.count) / start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Measures grouped writes. [`TASKS`] writes are pending at any time. One thread awaits their
    /// acknowledgements in order, as an executor would.
    fn together(&mut self, writes: Writes<'_>, own: &Store) -> Result<()> {
        let all = (writes.count * TIMES).max(TASKS);
        let (group, table) = own.writer()?;
        let submit = |n: u32| -> Result<_> {
            let batch = Batch::new().put(&table, writes.rows.key(n).bytes(), writes.value);
            Ok((Instant::now(), group.submit(batch)?))
        };
        let start = Instant::now();
        let mut waiting: VecDeque<_> = (0..TASKS).map(submit).collect::<Result<_>>()?;
        let mut next = TASKS;
        while let Some((began, ack)) = waiting.pop_front() {
            ack.wait()?;
            self.times_us.push(began.elapsed().as_secs_f64() * 1e6);
            if next < all {
                waiting.push_back(submit(next)?);
                next += 1;
            }
        }
        let time = start.elapsed().as_secs_f64();
        self.rates.push(f64::from(next) / time);
        Ok(())
    }
}
