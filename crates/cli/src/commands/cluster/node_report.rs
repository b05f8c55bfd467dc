//! What each node reports of itself.

use super::connect_args::Connector;
use super::state::ClusterState;
use nuthatch_cluster::lease::Permission;
use nuthatch_cluster::node::Node;
use nuthatch_cluster::slot::SLOTS;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maximum nodes queried at a time.
const MAX_THREADS: usize = 16;

/// What a node reports of itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodeReport {
    /// Whether it may serve, and why.
    pub(super) permission: Permission,
    /// Slots that it serves while it is permitted.
    pub(super) served: usize,
    /// Items, those of snapshots included.
    pub(super) items: u64,
}

/// A report, or why there is none.
pub(super) type Reported = Result<NodeReport, String>;

/// Returns the reports of all nodes that have a lease, in the order of the nodes. Each is requested
/// at the address that the node announces to clients.
pub(super) fn reports(state: &ClusterState, connector: &Connector) -> Vec<Reported> {
    let nodes: Vec<&Node> = state.map.nodes().values().map(|found| &found.node).collect();
    let reports: Mutex<Vec<Option<Reported>>> = Mutex::new(vec![None; nodes.len()]);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..nodes.len().min(MAX_THREADS) {
            scope.spawn(|| {
                while let Some((at, node)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    nodes.get(at).map(|node| (at, node))
                } {
                    let report = report(node, connector);
                    if let Ok(mut reports) = reports.lock() {
                        reports[at] = Some(report);
                    }
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap_or_default().into_iter();
    reports
        .map(|report| report.unwrap_or_else(|| Err("the node was not queried".to_owned())))
        .collect()
}

fn report(node: &Node, connector: &Connector) -> Reported {
    let address = &node.addresses.client;
    if address.is_empty() {
        return Err("it announces no address for clients".to_owned());
    }
    let mut connection = connector.connect_to(address)?;
    let id = connection.request(&["CLUSTER", "MYID"])?;
    if id.text() != node.id.to_string() {
        return Err(format!("{address}: expected this node, found {}", id.text()));
    }
    let info = connection.request(&["CLUSTER", "INFO"])?;
    let size = connection.request(&["DBSIZE"])?;
    parse(info.text(), size.text())
}

fn parse(info: &str, size: &str) -> Reported {
    let field = |name: &str| {
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.ok_or_else(|| format!("CLUSTER INFO: expected {name}, found none"))
    };
    let invalid = |name: &str| format!("{name}: expected a number, found another text");
    let is_leased = field("cluster_permitted")? == "1";
    let is_without_lease = field("cluster_serves_without_lease").is_ok_and(|value| value == "1");
    let served = field("cluster_slots_served")?;
    let served = served.parse().ok().filter(|served| *served <= SLOTS);
    Ok(NodeReport {
        permission: match (is_leased, is_without_lease) {
            (true, _) => Permission::Lease,
            (false, true) => Permission::WithoutLease,
            (false, false) => Permission::None,
        },
        served: served.ok_or_else(|| {
            format!("cluster_slots_served: expected a number up to {SLOTS}, found another text")
        })?,
        items: size.parse().map_err(|_| invalid("DBSIZE"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_three_numbers() {
        let info = "cluster_state:ok\r\ncluster_permitted:1\r\ncluster_slots_served:5461\r\n";
        let report = NodeReport { permission: Permission::Lease, served: 5461, items: 7 };
        assert_eq!(parse(info, "7"), Ok(report.clone()));
        let info = "cluster_permitted:0\r\ncluster_serves_without_lease:1\r\n\
                    cluster_slots_served:5461\r\n";
        let report = NodeReport { permission: Permission::WithoutLease, ..report };
        assert_eq!(parse(info, "7"), Ok(report));
        let error = parse("cluster_state:ok\r\n", "7").expect_err("an older server");
        assert_eq!(error, "CLUSTER INFO: expected cluster_permitted, found none");
    }
}
