//! Durable writes: one transaction each, and those of many tasks in groups.

use super::{Lmdb, Ordered, Store, StoreFigure, StoreOptions, key, median};
use crate::Result;
use nuthatch_store::Batch;
use std::thread;
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

    fn together(&mut self, each: u32, own: &Store, value: &[u8]) -> Result<()> {
        let (writer, table) = own.writer()?;
        let start = Instant::now();
        let times = thread::scope(|scope| {
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| {
                    let (writer, table) = (&writer, &table);
                    scope.spawn(move || -> Result<Vec<f64>> {
                        let mut times = Vec::with_capacity(each as usize);
                        for n in 0..each {
                            let began = Instant::now();
                            let batch = Batch::new().put(table, key(task * each + n), value);
                            writer.submit(batch)?.wait()?;
                            times.push(began.elapsed().as_secs_f64() * 1e6);
                        }
                        Ok(times)
                    })
                })
                .collect();
            let joined =
                tasks.into_iter().map(|task| task.join().map_err(|_| "a task panicked")?);
            joined.collect::<Result<Vec<_>>>()
        })?;
        let time = start.elapsed().as_secs_f64();
        self.rates.push(f64::from(TASKS * each) / time);
        self.times_us.extend(times.into_iter().flatten());
        Ok(())
    }
}
