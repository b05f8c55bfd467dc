//! `nuthatch cluster join` and `drain`.

use super::confirmation::confirm;
use super::connect_args::{ConnectArgs, Connector};
use super::connection::Connection;
use super::following::Following;
use super::moves::{Moves, slots_text};
use super::state::{ClusterState, described};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{print, print_summary};
use clap::Args;
use nuthatch_cluster::node::{Node, Participation};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_units::duration;
use serde_json::json;
use std::time::Instant;

const JOIN_NOTES: &str = "\
Examples:
  nuthatch cluster join cache-4:6379 --server cache-1:6379
  nuthatch cluster join 1f2e3d4c --yes

A node waits for this command if it was started with --cluster-join manual, or was forgotten. The
command also ends a drain. It shows the plan, which all nodes compute by themselves, and asks before
it begins. It connects to NODE, at the address that it announces, with the same login.

--json prints an object with the members change, node, slots, moves (from, to, slots) and seconds
(null with --no-wait).

Exit status:
  0  the slots have moved, or the request was accepted (--no-wait)
  2  invalid command line
  3  any other error, for example: no node responds, or an interrupt; the slots continue to move";

const DRAIN_NOTES: &str = "\
Examples:
  nuthatch cluster drain cache-4:6379 --server cache-1:6379
  nuthatch cluster drain 1f2e3d4c --yes --no-wait

The node gives all its slots to the other active nodes, and stays in the cluster without slots:
until it is stopped, or until nuthatch cluster join. A node that is started again takes slots,
unless it has --cluster-join manual. The command shows the plan. On a terminal it asks before it
begins. It connects to NODE, at the address that it announces, with the same login.

--json prints an object with the members change, node, slots, moves (from, to, slots) and seconds
(null with --no-wait).

Exit status:
  0  the slots have moved, or the request was accepted (--no-wait)
  2  invalid command line
  3  any other error, for example: no other node is active, or an interrupt; the slots
     continue to move";

/// Let a node take its part of the slots
#[derive(Debug, Args)]
#[command(after_long_help = JOIN_NOTES)]
pub(super) struct Join {
    #[command(flatten)]
    args: ChangeArgs,
}

/// Move all slots of a node to other nodes, so that it can be stopped
#[derive(Debug, Args)]
#[command(after_long_help = DRAIN_NOTES)]
pub(super) struct Drain {
    #[command(flatten)]
    args: ChangeArgs,
}

/// The arguments of both commands.
#[derive(Debug, Args)]
struct ChangeArgs {
    /// Address of the node, or the first digits of its identifier
    #[arg(value_name = "NODE")]
    node: String,
    /// Do not ask before the change, as without a terminal
    #[arg(short, long)]
    yes: bool,
    /// Do not wait until the slots have moved
    #[arg(long)]
    no_wait: bool,
    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// What a node is changed to.
struct Change {
    /// The subcommand of `CLUSTER`.
    command: &'static str,
    participation: Participation,
}

impl Join {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        self.args.run(&Change { command: "join", participation: Participation::Active })
    }
}

impl Drain {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        self.args.run(&Change { command: "drain", participation: Participation::Draining })
    }
}

impl ChangeArgs {
    fn run(&self, change: &Change) -> Result<Outcome, Failure> {
        let connector = self.connect.connector()?;
        let mut connection = connector.connect()?;
        let state = ClusterState::fetch(&mut connection).map_err(Failure::Error)?;
        let node = state.find(&self.node)?.clone();
        if node.is_stopped {
            let name = described(&node);
            return Err(Failure::Error(format!("{name} has stopped: start it first")));
        }
        let planned = state.map.with_participation(node.id, change.participation);
        let moves = Moves::of(&planned);
        if moves.unplanned > 0 {
            let problem = "expected another active node that takes the slots, found none";
            return Err(Failure::Error(format!("{}: {problem}", described(&node))));
        }
        let (command, name) = (change.command, described(&node));
        let total = moves.total();
        if node.participation == change.participation && total == 0 {
            return self.print(&node, change, &moves, None, &format!("{name}: nothing to do\n"));
        }
        if !self.json {
            let (slots, lines) = (slots_text(total), moves.lines(&state).join("\n"));
            print(&format!("{command} of {name} moves {slots}\n{lines}\n"))?;
        }
        if !self.yes {
            confirm()?;
        }
        request(&connector, &mut connection, &state, &node, &[&command.to_ascii_uppercase()])?;
        if self.no_wait {
            let text =
                format!("{name}: the request was accepted; nuthatch cluster status follows it\n");
            return self.print(&node, change, &moves, None, &text);
        }
        let begin = Instant::now();
        let following = Following::begin(&connector, self.json)?;
        let left = |state: &ClusterState| left(state, node.id, change.participation, total);
        following.until_done(&mut connection, total, left)?;
        let time = duration(begin.elapsed());
        let text = format!("{name}: {command} done, {} moved in {time}\n", slots_text(total));
        self.print(&node, change, &moves, Some(begin), &text)
    }

    fn print(
        &self,
        node: &Node,
        change: &Change,
        moves: &Moves,
        begin: Option<Instant>,
        text: &str,
    ) -> Result<Outcome, Failure> {
        if self.json {
            let object = json!({
                "change": change.command,
                "node": node.id.to_string(),
                "slots": moves.total(),
                "moves": moves.json(),
                "seconds": begin.map(|begin| begin.elapsed().as_secs_f64()),
            });
            print_summary(&format!("{object}\n"))?;
        } else {
            print_summary(text)?;
        }
        Ok(Outcome::Success)
    }
}

/// Returns the slots that are left to move: all of `total`, and at least 1, until the node has
/// announced the change.
fn left(state: &ClusterState, id: NodeId, participation: Participation, total: usize) -> usize {
    let moves = Moves::of(&state.map);
    let is_announced =
        state.map.node(id).is_some_and(|found| found.node.participation == participation);
    if is_announced { moves.total() + moves.unplanned } else { total.max(1) }
}

/// Sends a subcommand of `CLUSTER` to a node.
fn request(
    connector: &Connector,
    connection: &mut Connection,
    state: &ClusterState,
    node: &Node,
    words: &[&str],
) -> Result<(), Failure> {
    let words = [&["CLUSTER"], words].concat();
    let sent = if node.id == state.own {
        connection.request(&words)
    } else {
        let other = connector.connect_to(&node.addresses.client);
        other.and_then(|mut other| other.request(&words))
    };
    sent.map(drop).map_err(|problem| {
        let advice = "name an address at which this machine reaches the node with --server";
        Failure::Error(format!("{}: nothing was changed: {problem}; {advice}", described(node)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::state::tests::state;
    use super::*;

    /// The progress began with all slots but one, and then went back to none.
    #[test]
    fn all_slots_are_left_until_the_node_has_announced_the_change() {
        let mut state = state();
        let (id, change) = (NodeId::numbered(1), Participation::Draining);
        assert_eq!(left(&state, id, change, 16_320), 16_320);
        assert_eq!(left(&state, id, Participation::Active, 0), 8_192);
        state.map = state.map.with_participation(id, change);
        assert_eq!(left(&state, id, change, 16_320), 16_384);
    }
}
