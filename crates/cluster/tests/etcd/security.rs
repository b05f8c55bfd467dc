//! A member whose etcd has TLS, client certificates, users and tokens that expire.

use crate::certificates::Certificates;
use crate::keys;
use crate::problems::Reports;
use crate::server::{Servers, connect};
use nuthatch_cluster::boot_clock::{BootClock, BootTime, SystemBootClock};
use nuthatch_cluster::etcd::{Etcd, EtcdOptions, EtcdReload, Operation, ProblemKind};
use nuthatch_cluster::lease::Permit;
use nuthatch_cluster::member::{Command, Event, Member, MemberConfig};
use nuthatch_cluster::membership::{MemberHandle, Membership, SlotServer};
use nuthatch_cluster::node::{Addresses, Node};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SLOTS;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The number of slots that a member serves.
struct Server(watch::Sender<usize>);

impl SlotServer for Server {
    fn handle(&mut self, member: &Member, _: Event) {
        self.0.send_replace(member.serving().len());
    }
}

/// A running member.
struct Process {
    task: JoinHandle<()>,
    handle: MemberHandle,
    permit: Arc<Permit>,
    slots: watch::Receiver<usize>,
}

impl Process {
    fn start(etcd: Arc<Etcd>) -> Self {
        let permit = Arc::new(Permit::default());
        let node = Node::new(NodeId::numbered(1), Addresses::default());
        let config = MemberConfig::new(keys(), node);
        let clock = Arc::new(SystemBootClock);
        let (membership, handle) = Membership::new(etcd, config, clock, permit.clone());
        let (sender, slots) = watch::channel(0);
        let mut server = Server(sender);
        let task = tokio::spawn(async move { membership.run(&mut server).await });
        Self { task, handle, permit, slots }
    }

    /// Waits until all slots are served.
    async fn serving(&mut self) {
        let waiting = self.slots.wait_for(|slots| *slots == SLOTS);
        tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("in time").expect("one");
    }

    /// Waits until the permit lasts longer than until a time.
    async fn permitted_beyond(&self, end: BootTime) {
        let waiting = async {
            while self.permit.until() <= end {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("a renewal");
    }
}

/// Creates the user `node`, with access to the keys of one cluster only.
fn enable_users(servers: &mut Servers) {
    let prefix = keys().prefix().to_owned();
    for arguments in [
        &["user", "add", "root:r00t"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "node"],
        &["role", "grant-permission", "node", "--prefix=true", "readwrite", &prefix],
        &["user", "add", "node:s3cret"],
        &["user", "grant-role", "node", "node"],
        &["auth", "enable"],
    ] {
        servers.etcdctl(arguments);
    }
    servers.control_with(&["--user=root:r00t"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_needs_one_permission_and_logs_in_again_when_its_token_expires() {
    let certificates = Certificates::new();
    let arguments = [certificates.arguments(), vec!["--auth-token-ttl=1".to_owned()]].concat();
    let mut servers = Servers::start(1, &arguments);
    servers.control_with(&certificates.control().each_ref().map(String::as_str));
    let options = servers.options().tls(certificates.identity());
    let login = |password: &str| options.clone().credentials("node", password);
    connect(&options).await;
    // The node may start before users are created.
    let mut reports = Reports::default();
    let etcd = reports.client(&login("s3cret"));
    let mut process = Process::start(etcd.clone());
    process.serving().await;
    reports.expect(ProblemKind::LoginUnused, Operation::Login).await;
    enable_users(&mut servers);
    reports.expect_end(ProblemKind::LoginUnused).await;
    // Keep-alives have pauses that are longer than the life of a token.
    process.permitted_beyond(SystemBootClock.now().plus(Duration::from_secs(12))).await;
    reports.expect_none();
    let prefix = keys().prefix().to_owned();
    servers.etcdctl(&["role", "revoke-permission", "node", "--prefix=true", &prefix]);
    reports.expect(ProblemKind::PermissionDenied, Operation::Read).await;
    servers.etcdctl(&["role", "grant-permission", "node", "--prefix=true", "readwrite", &prefix]);
    reports.expect_end(ProblemKind::PermissionDenied).await;
    change_password(&servers, &etcd, &mut reports, &options).await;
    process.handle.command(Command::Leave);
    process.task.await.expect("the member has left");
    reports.expect_none();
    assert_eq!(etcd.problems(), []);
}

/// Changes the password in etcd, and then that of the client.
async fn change_password(
    servers: &Servers,
    etcd: &Etcd,
    reports: &mut Reports,
    options: &EtcdOptions,
) {
    servers.etcdctl(&["user", "delete", "node"]);
    servers.etcdctl(&["user", "add", "node:n3w"]);
    servers.etcdctl(&["user", "grant-role", "node", "node"]);
    let problem = reports.expect(ProblemKind::LoginRefused, Operation::Login).await;
    assert!(!format!("{problem:?}").contains("s3cret"), "{problem:?}");
    let options = options.clone().credentials("node", "n3w");
    etcd.apply(EtcdReload::new(&options).expect("valid options"));
    reports.expect_end(ProblemKind::LoginRefused).await;
}
