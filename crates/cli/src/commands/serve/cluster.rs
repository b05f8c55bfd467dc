//! The cluster that the cache server is a node of.

use super::etcd::{self, EtcdReloader};
use super::node_access::{self, node_access};
use super::node_files::NodeFiles;
use super::node_slots::{keep_slots, keeps_items};
use crate::outcome::Failure;
use crate::settings::{ClusterAddress, LoadedSettings, Settings, cluster_address, others_in_group};
use nuthatch_cache::Cache;
use nuthatch_cluster::boot_clock::{BootClock, BootTime, SystemBootClock};
use nuthatch_cluster::etcd::{Etcd, EtcdOptions};
use nuthatch_cluster::keys::Keys;
use nuthatch_cluster::lease::{Permission, Permit};
use nuthatch_cluster::member::{Command, Event, Held, Member, MemberConfig};
use nuthatch_cluster::membership::{MemberHandle, Membership, SlotServer};
use nuthatch_cluster::node::{Addresses, Node, Participation};
use nuthatch_listen::Address;
use nuthatch_server::{
    Cluster, Drained, ItemFiles, KeptSlots, Listener, MoveReport, Protocol, Running, WarmRestart,
};
use nuthatch_tiered::TieredCache;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tracing::{info, warn};

const LOG: &str = "nuthatch::cluster";

const CANNOT_MOVE: &str = "the slots cannot move: no other node is active, or this node has no \
                           lease; their items are lost";

const KEEPS_WITHOUT_LEASE: &str = "the node has no lease in etcd: its slots wait for its next \
                                   start only if no other node takes them before";

const KEEPS_UNMOVED: &str = "the slots cannot move: no other node is active, or this node has no \
                             lease; their items are kept for the next start, if no other node \
                             takes the slots before";

const SERVES_ON: &str = "the node has no lease in etcd, and serves its slots on (etcd-away): \
                         other nodes that reach etcd may serve them, too, and what clients write \
                         here may be lost; repair etcd or the network, or stop this node";

const KEEPS: &str = "the slots wait for the next start of this node, which has their items; \
                     other nodes take them after this time";

/// The pause between two looks at the permit, for the log.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Checks the settings of a cluster.
pub(super) fn check(loaded: &LoadedSettings) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let Some(address) = address(loaded)? else { return check_without_cluster(loaded) };
    etcd::check(loaded, &address)?;
    node_access::check(loaded)?;
    let others = [("pmc", &settings.pmc), ("mrcache", &settings.mrcache)];
    let is_used = |name: &str| !has_default_address(loaded, name);
    if let Some((name, _)) = others.iter().find(|(name, all)| !all.is_empty() && is_used(name)) {
        let problem = "expected off with --cluster, found an address: nodes serve clients of \
                       Redis and memcached";
        return Err(loaded.invalid(name, problem));
    }
    if settings.cluster_stop == "keep" && !keeps_items(settings) {
        let problem = "expected --disk or --warm-restart with keep, found neither: slots would \
                       wait without items";
        return Err(loaded.invalid("cluster-stop", problem));
    }
    if settings.announce != "auto" {
        return Ok(());
    }
    let addresses = settings.resp.iter().map(|listen_address| &listen_address.address);
    first_of_network(addresses).map(drop).map_err(|problem| loaded.invalid("announce", problem))
}

/// Checks that no setting of a cluster is set for a server without one, unless it is the default in
/// a file.
fn check_without_cluster(loaded: &LoadedSettings) -> Result<(), Failure> {
    let mut names = others_in_group("cluster").map(|setting| setting.name);
    match names.find(|name| loaded.is_set(name) && !loaded.is_default_from_file(name)) {
        Some(name) => {
            let problem = "expected a cluster, found none; name one with --cluster";
            Err(loaded.invalid(name, problem))
        }
        None => Ok(()),
    }
}

/// Returns whether the addresses of a setting are the default ones, as `--show-config` prints them,
/// too. A node of a cluster does without them.
pub(super) fn has_default_address(loaded: &LoadedSettings, name: &str) -> bool {
    !loaded.is_set(name) || loaded.is_default_from_file(name)
}

/// Returns the first address that other machines may connect to.
fn first_of_network<'a>(
    mut addresses: impl Iterator<Item = &'a Address>,
) -> Result<SocketAddr, String> {
    let advice = "name the address by which clients reach this node with --announce HOST:PORT";
    let first = addresses.find_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    match first {
        Some(address) if address.ip().is_unspecified() => {
            Err(format!("expected the address of this machine, found {address}; {advice}"))
        }
        Some(address) => Ok(address),
        None => Err(format!("expected an address of the network in --resp, found none; {advice}")),
    }
}

fn address(loaded: &LoadedSettings) -> Result<Option<ClusterAddress>, Failure> {
    let address = cluster_address(&loaded.settings.cluster);
    address.map_err(|problem| loaded.invalid("cluster", problem))
}

/// Returns the options of the connection to etcd, if the settings have a cluster. Reads the files
/// that the settings name.
pub(super) fn etcd_options(loaded: &LoadedSettings) -> Result<Option<EtcdOptions>, Failure> {
    address(loaded)?.map(|address| etcd::options(loaded, &address)).transpose()
}

/// Returns where the items are that outlive the process.
pub(super) fn item_files(
    disk: Option<Arc<TieredCache>>,
    warm_restart: Option<Arc<WarmRestart>>,
) -> ItemFiles {
    disk.map(ItemFiles::Disk).or(warm_restart.map(ItemFiles::Dump)).unwrap_or_default()
}

/// A node that does not take part in its cluster yet.
pub(super) struct ClusterNode {
    etcd: EtcdOptions,
    keys: Keys,
    permit: Arc<Permit>,
    clock: Arc<dyn BootClock>,
    pub(super) cluster: Arc<Cluster>,
    files: NodeFiles,
    held: Held,
    started_ms: u64,
}

/// Creates the node of this server, if the settings have a cluster. Its folder is locked. `files`
/// have the items of the slots that the last process has kept.
pub(super) fn node(
    loaded: &LoadedSettings,
    cache: &Arc<Cache>,
    files: ItemFiles,
    kept: Option<KeptSlots>,
) -> Result<Option<ClusterNode>, Failure> {
    let Some(address) = address(loaded)? else { return Ok(None) };
    let etcd = etcd::options(loaded, &address)?;
    let data_dir = &loaded.settings.data_dir;
    let node_files = NodeFiles::open(data_dir.as_deref());
    let node_files = node_files.map_err(|problem| {
        Failure::Error(format!("{}: {problem}", loaded.source("data-dir").named()))
    })?;
    let permit = Arc::new(Permit::default());
    let clock: Arc<dyn BootClock> = Arc::new(SystemBootClock);
    let started_ms = cache.session().map_or(0, |mut session| session.guard().now_ms());
    let cluster =
        Cluster::new(node_files.id, Arc::clone(cache), Arc::clone(&permit), Arc::clone(&clock));
    cluster.set_access(node_access(loaded)?);
    let mut cluster = cluster.with_forwarding(loaded.settings.cluster_forward);
    let kept = kept.filter(|kept| kept.folder_id == files.folder_id()).unwrap_or_default();
    let held = kept.slots.iter().map(|kept| (kept.slot, kept.epoch)).collect();
    let held = Held { data: kept.data, slots: held };
    if let (Some(folder), true) = (data_dir.clone(), !matches!(files, ItemFiles::None)) {
        let slots = held.slots.iter().map(|(slot, _)| *slot).collect();
        cluster = cluster.keep_items(files, &slots, move |kept| keep_slots(&folder, kept));
    }
    let (keys, cluster) = (address.keys, Arc::new(cluster));
    Ok(Some(ClusterNode {
        etcd,
        keys,
        permit,
        clock,
        cluster,
        files: node_files,
        held,
        started_ms,
    }))
}

impl ClusterNode {
    /// Takes part in the cluster, on a thread.
    pub(super) fn join(
        self,
        loaded: &LoadedSettings,
        running: &Running,
    ) -> Result<ClusterThread, Failure> {
        let settings = &loaded.settings;
        let client = announced(settings, running.listeners())
            .map_err(|problem| loaded.invalid("announce", problem))?;
        let mut node = Node::new(self.cluster.id(), Addresses { client, ..Addresses::default() });
        node.started_ms = self.started_ms;
        node.participation = participation(settings);
        node.weight = u32::try_from(settings.memory >> 20).unwrap_or(u32::MAX).max(1);
        let Self { etcd, keys, permit, clock, cluster, files, held, .. } = self;
        let failure = |error: &dyn std::fmt::Display| Failure::Error(format!("cluster: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failure(&error))?;
        let etcd = {
            let _entered = runtime.enter();
            Arc::new(etcd::client(&etcd).map_err(|error| failure(&error))?)
        };
        let reloader = EtcdReloader::new(Arc::clone(&etcd), runtime.handle().clone());
        let mut config = MemberConfig::new(keys, node);
        config.previous_leases = files.leases();
        config.held = held;
        config.serves_without_etcd = settings.etcd_away == "serve";
        let (membership, member) = Membership::new(Arc::clone(&etcd), config, clock, permit);
        let reports = member.clone();
        cluster.report_moves_to(move |report| match report {
            MoveReport::Finished { transfer } => reports.move_finished(transfer),
            MoveReport::Failed { transfer } => reports.move_failed(transfer),
        });
        let operator = member.clone();
        cluster.connect_member(move |command| operator.command(command));
        let mut server = Server { cluster: Arc::clone(&cluster), files };
        let thread = thread::Builder::new().name("nuthatch-cluster".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                let cluster = Arc::clone(&server.cluster);
                tokio::select! {
                    () = membership.run(&mut server) => {}
                    () = log_permit(&cluster, &etcd) => {}
                }
            });
        });
        let thread = thread.map_err(|error| failure(&error))?;
        let stop = NodeStop::of(settings);
        Ok(ClusterThread { cluster, member, reloader, stop, thread })
    }
}

/// Returns whether the node takes slots before an operator activates it.
fn participation(settings: &Settings) -> Participation {
    match settings.cluster_join {
        "manual" => Participation::Waiting,
        _ => Participation::Active,
    }
}

/// Returns the address of this node for clients.
fn announced(settings: &Settings, listeners: &[Listener]) -> Result<String, String> {
    if settings.announce != "auto" {
        return Ok(settings.announce.clone());
    }
    let resp = listeners.iter().filter(|listener| listener.protocol == Protocol::Resp);
    let address = first_of_network(resp.map(|listener| &listener.address))?;
    Ok(address.to_string())
}

/// Logs when the node gets a lease, and when it is without one.
async fn log_permit(cluster: &Cluster, etcd: &Etcd) {
    let mut before = None;
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        cluster.log_end_of_permit();
        let permission = Some(cluster.permission());
        if permission == before {
            continue;
        }
        let slots = cluster.served_slots();
        let problem = etcd.problems().pop().map(|problem| problem.kind.summary());
        let problem = problem.unwrap_or(
            "etcd is not known to have one: this process was stopped, or the lease was lost",
        );
        match cluster.permission() {
            Permission::Lease => {
                info!(target: LOG, slots, "the node has a lease in etcd, and serves its slots");
            }
            Permission::WithoutLease => warn!(target: LOG, slots, problem, "{SERVES_ON}"),
            Permission::None => warn!(
                target: LOG,
                problem, "the node has no lease in etcd, so requests with keys fail (CLUSTERDOWN)"
            ),
        }
        before = permission;
    }
}

/// Passes the events of the membership to the cache server.
struct Server {
    cluster: Arc<Cluster>,
    files: NodeFiles,
}

impl SlotServer for Server {
    fn handle(&mut self, member: &Member, event: Event) {
        match event {
            Event::LeaseGranted { lease } => self.files.keep_lease(lease),
            Event::Stopped { lease } => self.files.keep_stopped_lease(lease),
            _ => {}
        }
        self.cluster.handle(member, event);
    }

    fn note_permit(&mut self, until: BootTime) {
        self.cluster.log_permit(until);
    }
}

/// What a node does with its slots when it stops.
#[derive(Clone, Debug)]
struct NodeStop {
    /// How long it moves them to other nodes at most; `None` if it does not.
    max_drain_time: Option<Duration>,
    /// Whether they wait for its next start.
    keeps: Arc<AtomicBool>,
    /// How long they wait at most.
    max_wait: Duration,
}

impl NodeStop {
    fn of(settings: &Settings) -> Self {
        let keeps = match settings.cluster_stop {
            "auto" => settings.disk > 0,
            action => action == "keep",
        };
        let max_drain_time = (!keeps).then(|| Duration::from_millis(settings.cluster_drain_ms));
        let keeps = Arc::new(AtomicBool::new(keeps));
        Self { max_drain_time, keeps, max_wait: Duration::from_millis(settings.cluster_restart_ms) }
    }
}

/// The thread of the membership.
pub(super) struct ClusterThread {
    cluster: Arc<Cluster>,
    member: MemberHandle,
    reloader: EtcdReloader,
    stop: NodeStop,
    thread: JoinHandle<()>,
}

/// Moves the slots of this node to the others before the servers stop.
#[derive(Clone)]
pub(super) struct ClusterDrain {
    cluster: Arc<Cluster>,
    member: MemberHandle,
    stop: NodeStop,
}

impl ClusterDrain {
    /// Moves all slots to other nodes, as far as they can take them in time. Clients are served
    /// meanwhile.
    pub(super) fn run(&self) {
        let max_time = self.stop.max_drain_time.filter(|max_time| !max_time.is_zero());
        let Some(max_time) = max_time else { return };
        let slots = self.cluster.served_slots();
        info!(target: LOG, slots, "moving the slots of this node to others before it stops");
        self.member.command(Command::Drain);
        let drained = self.cluster.wait_until_drained(Instant::now() + max_time);
        let has_items = self.cluster.has_items();
        match drained {
            Drained::Stopped => {}
            Drained::Complete => info!(target: LOG, "all slots have moved to other nodes"),
            Drained::Impossible | Drained::Late { .. } if !has_items => {
                info!(target: LOG, "the slots of this node have not moved, and have no items");
            }
            Drained::Impossible if self.cluster.keeps_items() => {
                self.stop.keeps.store(true, Ordering::Relaxed);
                warn!(target: LOG, "{KEEPS_UNMOVED}");
            }
            Drained::Impossible => {
                warn!(target: LOG, "{CANNOT_MOVE}");
            }
            Drained::Late { slots } => warn!(
                target: LOG,
                slots,
                "slots have not moved in time, so their items are lost; raise --cluster-drain-ms"
            ),
        }
    }
}

impl ClusterThread {
    /// Returns the state that the threads of the server share.
    pub(super) fn cluster(&self) -> Arc<Cluster> {
        Arc::clone(&self.cluster)
    }

    /// Returns what replaces the certificates and the login for etcd.
    pub(super) fn reloader(&self) -> EtcdReloader {
        self.reloader.clone()
    }

    /// Returns what moves the slots of this node to others.
    pub(super) fn drain(&self) -> ClusterDrain {
        let (cluster, member) = (Arc::clone(&self.cluster), self.member.clone());
        ClusterDrain { cluster, member, stop: self.stop.clone() }
    }

    /// Leaves the cluster: other nodes take the slots at once, or after some time if the node keeps
    /// them. Waits for a response of etcd, a few seconds at most.
    pub(super) fn leave(self) {
        let slots = self.cluster.served_slots();
        let wait = self.stop.max_wait;
        let has_lease = self.cluster.permission() == Permission::Lease;
        let has_slots = slots > 0 || !has_lease;
        self.member.command(if has_slots && self.stop.keeps.load(Ordering::Relaxed) {
            if has_lease {
                info!(target: LOG, slots, ms = wait.as_millis() as u64, "{KEEPS}");
            } else {
                warn!(target: LOG, slots, "{KEEPS_WITHOUT_LEASE}");
            }
            Command::Stop(wait)
        } else {
            Command::Leave
        });
        // A panic has ended the program already.
        let _ = self.thread.join();
    }
}
