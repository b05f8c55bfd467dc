//! Members with three servers of etcd that are killed and stopped: no slot is served twice.

use crate::server::{Servers, connect};
use crate::{history, keys};
use nuthatch_cluster::boot_clock::{BootClock, SystemBootClock};
use nuthatch_cluster::etcd::{Etcd, Watch, WatchUpdate};
use nuthatch_cluster::lease::Permit;
use nuthatch_cluster::member::{Command, Event, Member, MemberConfig};
use nuthatch_cluster::membership::{MemberHandle, Membership, SlotServer};
use nuthatch_cluster::node::{Addresses, Node};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::{SLOTS, SlotSet};
use nuthatch_testing::process;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the servers of all nodes share with the test.
#[derive(Default)]
struct Shared {
    /// For each node its permit, and the slots that it serves.
    nodes: Vec<(Arc<Permit>, SlotSet)>,
}

impl Shared {
    /// Checks that no slot is served twice. Returns the number of slots that are served.
    fn check(&self) -> usize {
        let now = SystemBootClock.now();
        let mut all = SlotSet::new();
        for (permit, slots) in &self.nodes {
            if permit.holds(now) {
                assert!(!all.intersects(slots), "two nodes serve a slot");
                all.add(slots);
            }
        }
        all.len()
    }
}

struct Server {
    number: usize,
    shared: Arc<Mutex<Shared>>,
    handle: MemberHandle,
    changes: watch::Sender<u64>,
}

impl SlotServer for Server {
    fn handle(&mut self, _: &Member, event: Event) {
        let mut shared = self.shared.lock().expect("a lock");
        let slots = &mut shared.nodes[self.number].1;
        match event {
            Event::Gained { slots: gained, .. } => slots.add(&gained),
            Event::Lost { slots: lost } => slots.subtract(&lost),
            Event::MoveOut { transfer, slots: moved, .. } => {
                slots.subtract(&moved);
                self.handle.move_finished(transfer);
            }
            _ => {}
        }
        shared.check();
        self.changes.send_modify(|count| *count += 1);
    }
}

struct Cluster {
    etcd: Arc<Etcd>,
    shared: Arc<Mutex<Shared>>,
    changes: watch::Sender<u64>,
    tasks: Vec<Option<(JoinHandle<()>, MemberHandle)>>,
}

impl Cluster {
    fn start(&mut self, number: usize) {
        let permit = Arc::new(Permit::default());
        {
            let mut shared = self.shared.lock().expect("a lock");
            let node = (permit.clone(), SlotSet::new());
            if number < shared.nodes.len() {
                shared.nodes[number] = node;
            } else {
                shared.nodes.push(node);
            }
        }
        let id = NodeId::numbered(number as u32);
        let mut config = MemberConfig::new(keys(), Node::new(id, Addresses::default()));
        config.ttl = Duration::from_secs(4);
        let (membership, handle) =
            Membership::new(self.etcd.clone(), config, Arc::new(SystemBootClock), permit);
        let (shared, changes) = (self.shared.clone(), self.changes.clone());
        let mut server = Server { number, shared, handle: handle.clone(), changes };
        let task = tokio::spawn(async move { membership.run(&mut server).await });
        self.tasks.resize_with(self.tasks.len().max(number + 1), || None);
        self.tasks[number] = Some((task, handle));
    }

    /// Ends a node as a crash does.
    fn kill(&mut self, number: usize) {
        if let Some((task, _)) = self.tasks[number].take() {
            task.abort();
        }
    }

    /// Waits until all slots are served, by this number of nodes in equal parts.
    async fn balanced(&self, nodes: usize) {
        let is_balanced = |shared: &Shared| {
            let owners = shared.nodes.iter().filter(|(permit, slots)| {
                permit.holds(SystemBootClock.now())
                    && (SLOTS / nodes..=SLOTS.div_ceil(nodes)).contains(&slots.len())
            });
            shared.check() == SLOTS && owners.count() == nodes
        };
        let mut changes = self.changes.subscribe();
        let waiting = async {
            while !is_balanced(&self.shared.lock().expect("a lock")) {
                // A permit begins and ends without an event.
                let pause = Duration::from_millis(20);
                let _ = tokio::time::timeout(pause, changes.changed()).await;
            }
        };
        let patience = Duration::from_mins(1);
        tokio::time::timeout(patience, waiting).await.expect("a balanced cluster");
    }

    /// Waits until no node may serve.
    async fn silent(&self) {
        let waiting = async {
            while self.shared.lock().expect("a lock").check() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let patience = Duration::from_secs(20);
        tokio::time::timeout(patience, waiting).await.expect("no node serves");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_slot_is_served_twice_while_nodes_and_servers_of_etcd_are_killed() {
    let mut servers = Servers::start(3, &[]);
    let etcd = connect(&servers.options()).await;
    let mut cluster =
        Cluster { etcd, shared: Arc::default(), changes: watch::channel(0).0, tasks: Vec::new() };
    (0..5).for_each(|number| cluster.start(number));
    cluster.balanced(5).await;
    cluster.start(5);
    cluster.balanced(6).await;
    cluster.kill(1);
    cluster.balanced(5).await;
    // One server of three is killed, and another node joins.
    servers.kill(0);
    cluster.start(1);
    cluster.balanced(6).await;
    servers.run(0);
    // A server is stopped, whether it is the leader or not.
    for at in 0..3 {
        process::stop(servers.process(at));
        cluster.kill(2);
        cluster.balanced(5).await;
        process::proceed(servers.process(at));
        cluster.start(2);
        cluster.balanced(6).await;
    }
    // Without a majority, all nodes stop to serve before their leases end.
    (0..3).for_each(|at| servers.kill(at));
    cluster.silent().await;
    (0..3).for_each(|at| servers.run(at));
    cluster.balanced(6).await;
    let (task, handle) = cluster.tasks[4].take().expect("a node");
    handle.command(Command::Leave);
    task.await.expect("the node has left");
    cluster.balanced(5).await;
    let mut all = Watch::new(cluster.etcd.clone(), keys().prefix(), 1);
    let WatchUpdate::Changes { changes, .. } = all.next().await else { panic!("compacted") };
    assert!(history::check(&changes) >= SLOTS);
}
