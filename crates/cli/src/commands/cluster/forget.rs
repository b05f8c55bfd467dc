//! `nuthatch cluster forget`.

use super::confirmation::{can_ask, confirm};
use super::connect_args::ConnectArgs;
use super::following::Following;
use super::moves::slots_text;
use super::state::{ClusterState, described};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{print, print_summary};
use clap::Args;
use nuthatch_cluster::node::{Node, Participation};
use nuthatch_units::duration;
use serde_json::json;
use std::time::Instant;

const NOTES: &str = "\
Examples:
  nuthatch cluster forget cache-4:6379 --server cache-1:6379
  nuthatch cluster forget 1f2e3d4c --yes

For a node that does not serve its clients, but still renews its lease, so that other nodes do not
take its slots. The node at --server writes the request to etcd. The forgotten node ends its permit
and then its lease, so that no slot has two owners; other nodes take its slots without its items,
which are lost. It registers again, and waits without slots: stop it, or activate it with nuthatch
cluster join.

A node that has died, or that etcd does not reach, ends its lease by itself: its slots have other
owners within about ten seconds, with or without this command. The slots of a node that has stopped
and keeps them (--cluster-stop) have other owners at once with this command. To stop a node without
losing its items, use nuthatch cluster drain.

--json prints an object with the members node, slots and seconds (null with --no-wait).

Exit status:
  0  the slots have other owners, or the request was accepted (--no-wait)
  2  invalid command line
  3  any other error, for example: no node responds, or an interrupt";

/// Take the slots of a node that hangs or has stopped, without its items
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Forget {
    /// Address of the node, or the first digits of its identifier
    #[arg(value_name = "NODE")]
    node: String,
    /// Do not ask before the change; required without a terminal, and if NODE is the node at
    /// --server
    #[arg(short, long)]
    yes: bool,
    /// Do not wait until the slots have other owners
    #[arg(long)]
    no_wait: bool,
    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Forget {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let connector = self.connect.connector()?;
        let mut connection = connector.connect()?;
        let state = ClusterState::fetch(&mut connection).map_err(Failure::Error)?;
        let node = state.find(&self.node)?.clone();
        let (name, owned) = (described(&node), state.owned(node.id));
        if !self.yes {
            check(&state, &node)?;
        }
        if !self.json {
            let advice = if node.is_stopped {
                "a start of the node keeps them"
            } else {
                "nuthatch cluster drain keeps them"
            };
            let slots = slots_text(owned);
            print(&format!("forget of {name} loses the items of {slots}; {advice}\n"))?;
        }
        if !self.yes {
            confirm()?;
        }
        let sent = connection.request(&["CLUSTER", "FORGET", &node.id.to_string()]);
        sent.map_err(|problem| Failure::Error(format!("nothing was changed: {problem}")))?;
        let begin = Instant::now();
        if !self.no_wait {
            let following = Following::begin(&connector, self.json)?;
            following.until_done(&mut connection, owned, |state| left(state, &node))?;
        }
        self.print(&node, owned, (!self.no_wait).then_some(begin))
    }

    fn print(&self, node: &Node, owned: usize, begin: Option<Instant>) -> Result<Outcome, Failure> {
        let time = begin.map(|begin| begin.elapsed());
        if self.json {
            let object = json!({
                "node": node.id.to_string(),
                "slots": owned,
                "seconds": time.map(|time| time.as_secs_f64()),
            });
            print_summary(&format!("{object}\n"))?;
            return Ok(Outcome::Success);
        }
        let (name, slots) = (described(node), slots_text(owned));
        let text = match time {
            Some(time) => format!("{name}: {slots} have other owners after {}\n", duration(time)),
            None => {
                format!("{name}: the request was accepted; nuthatch cluster status follows it\n")
            }
        };
        print_summary(&text)?;
        Ok(Outcome::Success)
    }
}

/// Refuses a change that no user can confirm, and one of the node that is asked.
fn check(state: &ClusterState, node: &Node) -> Result<(), Failure> {
    let problem = if node.id == state.own {
        "expected another node than the one at --server; --yes forgets this one"
    } else if can_ask() {
        return Ok(());
    } else {
        "expected --yes, since there is no terminal to ask; the items of the node are lost"
    };
    Err(Failure::Usage(format!("{}: {problem}", described(node))))
}

/// Returns the slots that have no other owner yet, at least 1 until the node has ended its lease.
fn left(state: &ClusterState, node: &Node) -> usize {
    let found = state.map.node(node.id).map(|found| &found.node);
    let is_over = found
        .is_none_or(|found| found.participation == Participation::Waiting && !found.is_forgotten);
    state.owned(node.id).max(usize::from(!is_over))
}
