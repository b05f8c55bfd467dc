//! `nuthatch cluster rebalance`.

use super::connect_args::ConnectArgs;
use super::following::Following;
use super::moves::{Moves, slots_text};
use super::state::{ClusterState, described};
use crate::outcome::{Failure, Outcome};
use crate::terminal::print;
use clap::Args;
use nuthatch_cluster::node::Participation;
use nuthatch_units::duration;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

const NOTES: &str = "\
Examples:
  nuthatch cluster rebalance
  nuthatch cluster rebalance --server cache-1:6379 --json --no-wait | jq .slots

The command changes nothing: active nodes balance their slots by themselves, in proportion to their
--memory. It shows which slots are still to move, says what waiting and draining nodes need, and
waits until no slot is left.

--json prints an object with the members slots, moves (from, to, slots), waiting and draining
(identifiers of nodes) and seconds (null with --no-wait).

Exit status:
  0  the slots are balanced, or --no-wait
  2  invalid command line
  3  any other error, for example: no node responds, or an interrupt; the slots continue to move";

/// Show the moves that are left until the slots are balanced, and wait for them
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Rebalance {
    /// Do not wait until the slots have moved
    #[arg(long)]
    no_wait: bool,
    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Rebalance {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let connector = self.connect.connector()?;
        let mut connection = connector.connect()?;
        let state = ClusterState::fetch(&mut connection).map_err(Failure::Error)?;
        let moves = Moves::of(&state.map);
        if !self.json {
            print(&text(&state, &moves))?;
        }
        let begin = Instant::now();
        let total = moves.total();
        let is_waiting = !self.no_wait && moves.unplanned == 0;
        if is_waiting && total > 0 {
            let following = Following::begin(&connector, self.json)?;
            following.until_done(&mut connection, total, |state| Moves::of(&state.map).total())?;
        }
        if self.json {
            let seconds = is_waiting.then(|| begin.elapsed().as_secs_f64());
            let object = json!({
                "slots": total,
                "moves": moves.json(),
                "waiting": ids(&state, Participation::Waiting),
                "draining": ids(&state, Participation::Draining),
                "seconds": seconds,
            });
            print(&format!("{object}\n"))?;
        } else if is_waiting && total > 0 {
            print(&format!("{} moved in {}\n", slots_text(total), duration(begin.elapsed())))?;
        }
        Ok(Outcome::Success)
    }
}

/// Returns the plan, and what waiting and draining nodes need.
fn text(state: &ClusterState, moves: &Moves) -> String {
    let mut text = match moves.total() {
        _ if moves.unplanned > 0 => "no node is active, so no slot moves\n".to_owned(),
        0 => "the slots are balanced\n".to_owned(),
        total => format!("{} to move\n{}\n", slots_text(total), moves.lines(state).join("\n")),
    };
    for found in state.map.nodes().values() {
        let (name, owned) = (described(&found.node), slots_text(state.owned(found.node.id)));
        // Writing to a string cannot fail.
        let _ = match found.node.participation {
            Participation::Active => Ok(()),
            Participation::Waiting => {
                writeln!(text, "{name} waits; nuthatch cluster join activates it")
            }
            Participation::Draining => writeln!(
                text,
                "{name} drains, {owned} left; then stop it, or nuthatch cluster join activates it"
            ),
        };
    }
    text
}

fn ids(state: &ClusterState, participation: Participation) -> Value {
    let nodes = state.map.nodes().values().map(|found| &found.node);
    let nodes = nodes.filter(|node| node.participation == participation);
    nodes.map(|node| node.id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cluster::state::tests::state;

    #[test]
    fn the_plan_says_what_waiting_nodes_need() {
        let state = state();
        let text = text(&state, &Moves::of(&state.map));
        assert!(text.starts_with("8,192 slots to move\n   8,128 slots from 00000001 "), "{text}");
        let last = "00000003 (cache-3:6379) waits; nuthatch cluster join activates it\n";
        assert!(text.ends_with(last), "{text}");
        assert_eq!(ids(&state, Participation::Draining), json!([]));
    }
}
