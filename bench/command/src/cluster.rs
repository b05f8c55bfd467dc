//! `nuthatch-bench cluster`: arguments, manual page and scenarios.

use crate::failure::Failure;
use clap::Args;
use nuthatch_bench::Random;
use nuthatch_cluster::simulate::{Cost, STEP, Simulation};
use nuthatch_cluster::slot::SLOTS;
use std::io::Write;

const ABOUT: [&str; 2] = [
    "Simulate a large cluster: balance, size of the map, watch traffic and time to settle",
    "

Runs the members of a cluster in one process, over an etcd in memory, in steps of 10 ms. A request \
to etcd and its response take one step each, and so does a transfer of items. The nodes start \
together; then one joins, one dies, a tenth dies, and all restart in ten groups, keeping their \
slots.",
];

const NOTES: &str = "\
Examples:
  nuthatch-bench cluster
  nuthatch-bench cluster --nodes 20 --keys 1000000

The time of a death includes the rest of its lease of 8 s. Watch traffic is what etcd sends to one
node: keys and values that have changed. One of the nodes with the most keys has `max keys` times
the mean.";

/// Simulate a large cluster
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
pub(crate) struct Cluster {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value = "1000")]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=4000))]
    nodes: u32,
    /// Number of random keys
    #[arg(long, value_name = "N", default_value = "100000000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,
}

impl Cluster {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let nodes = self.nodes as usize;
        let mut keys = vec![0; SLOTS];
        let mut random = Random::new(19);
        for _ in 0..self.keys {
            keys[(random.word() >> 50) as usize] += 1;
        }
        let mut simulation = Simulation::new();
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "{:<14} {:>8} {:>8} {:>8} {:>10} {:>10} {:>9} {:>9}",
            "change", "settle", "slots", "commits", "conflicts", "watch", "map", "max keys"
        )?;
        for change in [Change::Start, Change::Join, Change::Death, Change::Deaths, Change::Restarts]
        {
            let name = change.make(&mut simulation, nodes);
            let Cost { steps, moved_slots, commits, conflicts, watch_bytes } = simulation.settle();
            writeln!(
                out,
                "{name:<14} {:>6.1} s {moved_slots:>8} {commits:>8} {conflicts:>10} {:>6} KiB \
                 {:>5} KiB {:>8.3}x",
                (STEP * steps).as_secs_f64(),
                watch_bytes / 1024,
                simulation.map_bytes() / 1024,
                imbalance(&simulation, &keys),
            )?;
            out.flush()?;
        }
        Ok(())
    }
}

/// A change of the cluster.
#[derive(Clone, Copy)]
enum Change {
    Start,
    Join,
    Death,
    Deaths,
    Restarts,
}

impl Change {
    /// Makes the change in a cluster that begins with `nodes`. Returns its name.
    fn make(self, simulation: &mut Simulation, nodes: usize) -> &'static str {
        match self {
            Self::Start => {
                (0..nodes).for_each(|number| simulation.start(number));
                "start together"
            }
            Self::Join => {
                simulation.start(nodes);
                "one joins"
            }
            Self::Death => {
                simulation.kill(nodes / 2);
                "one dies"
            }
            Self::Deaths => {
                (0..nodes / 10).for_each(|number| simulation.kill(number));
                "a tenth dies"
            }
            Self::Restarts => {
                let alive: Vec<usize> =
                    (nodes / 10..=nodes).filter(|number| *number != nodes / 2).collect();
                for group in alive.chunks(alive.len().div_ceil(10)) {
                    for number in group {
                        simulation.start(*number);
                    }
                    // A second between two groups.
                    simulation.run(100);
                }
                "all restart"
            }
        }
    }
}

/// Returns the keys of the node with the most keys, in multiples of the mean.
fn imbalance(simulation: &Simulation, keys: &[u32]) -> f64 {
    let mut totals = std::collections::BTreeMap::new();
    for (owner, keys) in simulation.owners().into_iter().zip(keys) {
        *totals.entry(owner).or_insert(0u64) += u64::from(*keys);
    }
    let total: u64 = totals.values().sum();
    let max = totals.values().max().copied().unwrap_or_default();
    max as f64 * totals.len() as f64 / total as f64
}
