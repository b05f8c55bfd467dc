//! `nuthatch cluster status`.

use super::connect_args::{ConnectArgs, Connector};
use super::connection::Connection;
use super::moves::slots_text;
use super::node_report::{Reported, reports};
use super::state::{ClusterState, described, share, short};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Stdout;
use clap::Args;
use nuthatch_cluster::lease::Permission;
use nuthatch_cluster::map::SlotCounts;
use nuthatch_cluster::node::{Node, Participation};
use nuthatch_cluster::slot::SLOTS;
use nuthatch_units::grouped;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::mpsc::channel;
use std::time::Duration;

const NOTES: &str = "\
Examples:
  nuthatch cluster status
  nuthatch cluster status --server cache-1:6379 --watch
  nuthatch cluster status --json | jq '.nodes[] | select(.state != \"active\")'

The nodes and their slots are those that the node at --server knows. Items and served slots are
those that each node reports: it is asked at the address that it announces to clients. A node that
does not respond there is a problem, since clients use the same address.

--json prints an object with the members slots (total, covered, served), nodes and problems; of each
node id, address, state (active, waiting, draining, stopped or failed), weight, slots, share,
moving_out and moving_in, and items and served (null if it does not respond).

Exit status:
  0  all slots have an owner, which serves them
  1  some slots are not served, or a node has a problem
  2  invalid command line
  3  any other error, for example: the node does not respond, or is in no cluster";

/// Time between two samples of `--watch`.
const INTERVAL: Duration = Duration::from_secs(2);

/// Moves the cursor to the first line of a terminal, and clears it.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Show the nodes of a cluster, their slots, and problems
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Status {
    /// Print the status as a JSON object
    #[arg(long)]
    json: bool,
    /// Print the status again every two seconds, until an interrupt
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Status {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let connector = self.connect.connector()?;
        let mut connection = connector.connect()?;
        if !self.watch {
            let shown = Shown::fetch(&mut connection, &connector).map_err(Failure::Error)?;
            self.print(&shown.text(self.json), false)?;
            let is_healthy = shown.problems.is_empty();
            return Ok(if is_healthy { Outcome::Success } else { Outcome::NotFound });
        }
        // Nothing is sent: receiving waits for the interval.
        let (_sender, nothing) = channel::<()>();
        loop {
            let shown = Shown::fetch(&mut connection, &connector);
            let text = shown.map_or_else(|problem| problem + "\n", |shown| shown.text(self.json));
            self.print(&text, true)?;
            let _ = nothing.recv_timeout(INTERVAL);
            if let Ok(again) = connector.connect() {
                connection = again;
            }
        }
    }

    fn print(&self, text: &str, is_repeated: bool) -> Result<(), Failure> {
        let mut stdout = Stdout::new();
        if is_repeated && !self.json && stdout.is_terminal() {
            stdout.write(CLEAR.as_bytes())?;
        }
        stdout.write(text.as_bytes())?;
        stdout.flush()
    }
}

/// The status of a cluster.
struct Shown {
    rows: Vec<Row>,
    covered: usize,
    served: usize,
    problems: Vec<String>,
}

/// A node.
struct Row {
    node: Node,
    state: &'static str,
    slots: SlotCounts,
    reported: Option<Reported>,
}

impl Shown {
    fn fetch(connection: &mut Connection, connector: &Connector) -> Result<Self, String> {
        let state = ClusterState::fetch(connection)?;
        let reports = reports(&state, connector);
        Ok(Self::new(&state, reports))
    }

    fn new(state: &ClusterState, reports: Vec<Reported>) -> Self {
        let row = |node: &Node, name, reported| Row {
            node: node.clone(),
            state: name,
            slots: state.counts.get(&node.id).copied().unwrap_or_default(),
            reported,
        };
        let present = state.map.nodes().values().map(|found| &found.node);
        let present = present.zip(reports);
        let present = present.map(|(node, report)| row(node, node.state(), Some(report)));
        let departed = state.departed.values().map(|node| row(node, "failed", None));
        let rows: Vec<Row> = present.chain(departed).collect();
        let reports = rows.iter().filter_map(|row| row.reported.as_ref()?.as_ref().ok());
        let served = reports.filter(|report| report.permission != Permission::None);
        let served = served.map(|report| report.served).sum();
        let covered = state.covered();
        let mut problems: Vec<String> = rows.iter().filter_map(Row::problem).collect();
        if state.map.node(state.own).is_none() {
            let problem = "the node at --server has no lease: check that it reaches etcd";
            problems.push(problem.to_owned());
        } else if !rows.iter().any(|row| row.node.participation == Participation::Active) {
            problems.push("no node is active; nuthatch cluster join NODE activates one".to_owned());
        }
        if covered < SLOTS {
            let text = slots_text(SLOTS - covered);
            problems.push(format!("{text} without an owner that has a lease"));
        } else if served < SLOTS && problems.is_empty() {
            let text = slots_text(SLOTS - served);
            problems.push(format!("{text} not served at this moment, since they change the owner"));
        }
        Self { rows, covered, served, problems }
    }

    fn text(&self, as_json: bool) -> String {
        if as_json { format!("{}\n", self.json()) } else { self.table() }
    }

    fn table(&self) -> String {
        let count = |number: usize| grouped(number as u64);
        let (nodes, s) = (self.rows.len(), if self.rows.len() == 1 { "" } else { "s" });
        let (covered, served) = (count(self.covered), count(self.served));
        let mut text = format!(
            "{nodes} node{s}; of {} slots, {covered} have an owner and {served} are served\n\n\
             node      {:<24} state      weight    slots    share        items     out      in\n",
            count(SLOTS),
            "address",
        );
        for row in &self.rows {
            let (id, address) = (short(row.node.id), &row.node.addresses.client);
            let (owned, out) = (count(row.slots.owned), count(row.slots.moving_out));
            let (moving_in, percent) = (count(row.slots.moving_in), 100.0 * share(row.slots.owned));
            let (state, weight) = (row.state, grouped(row.node.weight.into()));
            let items = row.reported.as_ref().and_then(|report| report.as_ref().ok());
            let items = items.map_or_else(|| "-".to_owned(), |report| grouped(report.items));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{id}  {address:<24} {state:<8} {weight:>8} {owned:>8} {percent:>6.1} % \
                 {items:>12} {out:>7} {moving_in:>7}"
            );
        }
        if !self.problems.is_empty() {
            text.push('\n');
        }
        for problem in &self.problems {
            let _ = writeln!(text, "problem: {problem}");
        }
        text
    }

    fn json(&self) -> Value {
        let nodes: Value = self.rows.iter().map(Row::json).collect();
        json!({
            "slots": { "total": SLOTS, "covered": self.covered, "served": self.served },
            "nodes": nodes,
            "problems": self.problems,
        })
    }
}

impl Row {
    fn problem(&self) -> Option<String> {
        let name = described(&self.node);
        let owned = slots_text(self.slots.owned);
        match &self.reported {
            None => Some(format!("{name} has no lease; {owned} of it without another owner")),
            Some(Err(_)) if self.node.is_stopped => Some(format!(
                "{name} has stopped, and {owned} wait for its next start; nuthatch cluster forget \
                 gives them to other nodes, without items"
            )),
            Some(Err(problem)) => Some(format!("{name} does not respond: {problem}")),
            Some(Ok(report)) => match report.permission {
                Permission::Lease => None,
                Permission::WithoutLease => Some(format!(
                    "{name} serves without a lease, so other nodes may serve its slots, too; check \
                     that it reaches etcd"
                )),
                Permission::None => {
                    Some(format!("{name} cannot renew its lease; check that it reaches etcd"))
                }
            },
        }
    }

    fn json(&self) -> Value {
        let report = self.reported.as_ref().and_then(|report| report.as_ref().ok());
        json!({
            "id": self.node.id.to_string(),
            "address": self.node.addresses.client,
            "state": self.state,
            "weight": self.node.weight,
            "slots": self.slots.owned,
            "share": share(self.slots.owned),
            "moving_out": self.slots.moving_out,
            "moving_in": self.slots.moving_in,
            "items": report.map(|report| report.items),
            "served": report.map(|report| report.served),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cluster::node_report::NodeReport;
    use crate::commands::cluster::state::tests::state;

    #[test]
    fn problems_are_named_with_their_nodes() {
        let report = |permission, served| Ok(NodeReport { permission, served, items: 1234 });
        let reports = vec![
            report(Permission::Lease, 16_320),
            report(Permission::None, 64),
            Err("cache-3: gone".to_owned()),
        ];
        let shown = Shown::new(&state(), reports);
        let text = shown.text(false);
        let start = "4 nodes; of 16,384 slots, 16,320 have an owner and 16,320 are served\n\nnode ";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("\n00000001  cache-1:6379 ") && text.contains(" 1,234 "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 101), "{text}");
        let expected = [
            "00000002 (cache-2:6379) cannot renew its lease; check that it reaches etcd",
            "00000003 (cache-3:6379) does not respond: cache-3: gone",
            "00000004 (cache-4:6379) has no lease; 64 slots of it without another owner",
            "64 slots without an owner that has a lease",
        ];
        assert_eq!(shown.problems, expected);
        assert!(text.ends_with(&format!("problem: {}\n", expected[3])), "{text}");
        let json: Value = serde_json::from_str(&shown.text(true)).expect("JSON");
        assert_eq!(json["slots"]["covered"], 16_320);
        assert_eq!(
            (&json["nodes"][3]["state"], &json["nodes"][2]["items"]),
            (&"failed".into(), &Value::Null)
        );
    }
}
