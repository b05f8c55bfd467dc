//! `nuthatch cluster`: shows a cluster of cache servers, and changes it.
//!
//! | file | content |
//! |---|---|
//! | `status.rs`, `change.rs`, `rebalance.rs`, `forget.rs` | the commands |
//! | `connect_args.rs`, `connection.rs`, `reply.rs` | connections to nodes |
//! | `state.rs`, `node_report.rs` | the cluster as one node knows it, and what each node reports |
//! | `moves.rs`, `following.rs` | the plan, and its progress |
//! | `confirmation.rs` | the question before a change |

mod change;
mod confirmation;
mod connect_args;
mod connection;
mod following;
mod forget;
mod moves;
mod node_report;
mod rebalance;
mod reply;
mod state;
mod status;

use crate::outcome::{Failure, Outcome};
use clap::{Args, Subcommand};

const ABOUT: [&str; 2] = [
    "Show a cluster of cache servers, and move its slots",
    "

The nodes of a cluster balance themselves: each active node has slots in proportion to its \
--memory, and moves slots when nodes join or drain. The others take the slots of a node that died, \
without its items. The commands connect to --server, which knows all nodes; join, drain and status \
also connect to others, at the addresses that they announce.",
];

const NOTES: &str = "\
Examples:
  nuthatch cluster status --server cache-1:6379
  nuthatch cluster drain cache-2:6379 --server cache-1:6379
  nuthatch cluster join 1f2e3d4c              a node by the first digits of its identifier

Exit status:
  0  success
  1  status: slots are not served, or a node has a problem
  2  invalid command line
  3  any other error, for example: no node responds, the login is refused, an interrupt";

/// Show a cluster of cache servers, and move its slots.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::Status),
    Join(change::Join),
    Drain(change::Drain),
    Rebalance(rebalance::Rebalance),
    Forget(forget::Forget),
}

impl Cluster {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        match &self.command {
            Command::Status(status) => status.run(),
            Command::Join(join) => join.run(),
            Command::Drain(drain) => drain.run(),
            Command::Rebalance(rebalance) => rebalance.run(),
            Command::Forget(forget) => forget.run(),
        }
    }
}
