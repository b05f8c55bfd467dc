//! Durable writes: one transaction each, and those of many tasks in groups.

use super::{Lmdb, Ordered, Store, StoreFigure, StoreOptions, key, median};
use crate::Result;
use nuthatch_store::Batch;
use std::collections::VecDeque;
use std::time::Instant;

/// Tasks that write at once.
const TASKS: u32 = 64;
/// Writes of all tasks, for each one that is written alone.
const TIMES: u32 = 16;

/// Rates, and of the tasks the times of all acknowledgements in microseconds.
#[derive(Default)]
struct Samples {
    rates: Vec<f64>,
    times_us: Vec<f64>,
}

pub(super) fn race<O: Ordered>(
    options: &StoreOptions,
    lmdb: &Lmdb,
    own: &Store,
    other: Option<&O>,
) -> Result<Vec<StoreFigure>> {
    let value = vec![b'w'; options.value_len];
    let [mut plain, mut single, mut grouped, mut others] = [(); 4].map(|()| Samples::default());
    for _ in 0..options.rounds {
        plain.alone(options.writes, |key| lmdb.write(key, &value))?;
        single.alone(options.writes, |key| own.write(key, &value))?;
        grouped.together(options.writes * TIMES / TASKS, own, &value)?;
        if let Some(other) = other {
            others.alone(options.writes, |key| other.write(key, &value))?;
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
        figure("write", Lmdb::NAME, &mut plain, None),
        figure("write", Store::NAME, &mut single, Some((Lmdb::NAME, base))),
        figure("write_64_tasks", Store::NAME, &mut grouped, Some(("one at a time", alone))),
    ];
    if other.is_some() {
        figures.push(figure("write", O::NAME, &mut others, Some((Lmdb::NAME, base))));
    }
    Ok(figures)
}

impl Samples {
    fn alone(&mut self, writes: u32, write: impl Fn(&[u8]) -> Result<()>) -> Result<()> {
        let start = Instant::now();
        for n in 0..writes {
            let began = Instant::now();
            write(&key(n))?;
            self.times_us.push(began.elapsed().as_secs_f64() * 1e6);
        }
        self.rates.push(f64::from(writes) / start.elapsed().as_secs_f64());
        Ok(())
    }

    /// As many tasks as there are wait at any time, each for its own acknowledgement; one thread
    /// takes these in turn, as an executor would.
    fn together(&mut self, each: u32, own: &Store, value: &[u8]) -> Result<()> {
        let (writer, table) = own.writer()?;
        let submit = |n: u32| -> Result<_> {
            let batch = Batch::new().put(&table, key(n), value);
            Ok((Instant::now(), writer.submit(batch)?))
        };
        let start = Instant::now();
        let mut waiting: VecDeque<_> = (0..TASKS).map(submit).collect::<Result<_>>()?;
        let mut next = TASKS;
        while let Some((began, ack)) = waiting.pop_front() {
            ack.wait()?;
            self.times_us.push(began.elapsed().as_secs_f64() * 1e6);
            if next < TASKS * each {
                waiting.push_back(submit(next)?);
                next += 1;
            }
        }
        let time = start.elapsed().as_secs_f64();
        self.rates.push(f64::from(next) / time);
        Ok(())
    }
}
