//! What the client reports if etcd cannot be reached, or refuses requests.

use crate::certificates::Certificates;
use crate::keys;
use crate::server::{Servers, connect};
use nuthatch_cluster::etcd::{Etcd, EtcdOptions, EtcdProblem, EtcdReport, Operation, ProblemKind};
use nuthatch_cluster::request::{Reply, Request, Txn, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const DEADLINE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_mins(1);

/// The reports of a client.
pub(crate) struct Reports {
    sender: UnboundedSender<EtcdReport>,
    receiver: UnboundedReceiver<EtcdReport>,
}

impl Default for Reports {
    fn default() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { sender, receiver }
    }
}

impl Reports {
    /// Creates a client with these reports.
    pub(crate) fn client(&self, options: &EtcdOptions) -> Arc<Etcd> {
        let sender = self.sender.clone();
        let report = move |report| drop(sender.send(report));
        Arc::new(Etcd::with_reports(options, report).expect("options"))
    }

    async fn next(&mut self) -> EtcdReport {
        let report = tokio::time::timeout(PATIENCE, self.receiver.recv()).await;
        report.expect("a report").expect("a client")
    }

    /// Waits for the begin of a problem. Checks that it is the next report.
    pub(crate) async fn expect(&mut self, kind: ProblemKind, request: Operation) -> EtcdProblem {
        match self.next().await {
            EtcdReport::Began(problem) => {
                assert_eq!((problem.kind, problem.request), (kind, request), "{problem:?}");
                problem
            }
            EtcdReport::Ended(problem) => panic!("expected {kind:?}, found the end of {problem:?}"),
        }
    }

    /// Waits for the end of a problem. Checks that it is the next report.
    pub(crate) async fn expect_end(&mut self, kind: ProblemKind) {
        let report = self.next().await;
        assert!(
            matches!(&report, EtcdReport::Ended(problem) if problem.kind == kind),
            "expected the end of {kind:?}, found {report:?}"
        );
    }

    /// Checks that there are no other reports.
    pub(crate) fn expect_none(&mut self) {
        let report = self.receiver.try_recv();
        assert!(report.is_err(), "{report:?}");
    }
}

async fn read(etcd: &Etcd) -> bool {
    etcd.execute(&Request::Read(keys().prefix().to_owned()), DEADLINE).await.is_ok()
}

/// Reads until a condition holds.
async fn read_until(etcd: &Etcd, mut is_met: impl FnMut(bool) -> bool) {
    let reading = async {
        while !is_met(read(etcd).await) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let result = tokio::time::timeout(PATIENCE, reading).await;
    assert!(result.is_ok(), "the condition does not hold; problems: {:?}", etcd.problems());
}

/// Reads twice, and returns the problems of it.
async fn problems(options: &EtcdOptions) -> Vec<EtcdProblem> {
    let etcd = Etcd::new(options).expect("options");
    assert!(!read(&etcd).await && !read(&etcd).await);
    etcd.problems()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_has_a_cause_and_advice() {
    use ProblemKind::{Disconnected, NoResponse, Tls, Unreachable};
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let servers = Servers::start(1, &certificates.arguments());
    let identity = certificates.identity();
    connect(&servers.options().tls(identity.clone())).await;
    let plain = Servers::start(1, &[]);
    connect(&plain.options()).await;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let unused = listener.local_addr().expect("an address").to_string();
    let unused = EtcdOptions::new(&[unused]).expect("an endpoint");
    drop(listener);
    for (options, kinds, text) in [
        (servers.options().tls(others.trust()), &[Tls][..], "is not trusted; name a PEM file"),
        // The reason does not always arrive.
        (servers.options().tls(certificates.trust()), &[Tls, Disconnected], "client certificate"),
        (servers.options(), &[Disconnected, NoResponse], "begin the URL with etcds://"),
        (plain.options().tls(identity), &[Tls, NoResponse], "has TLS at this endpoint"),
        (unused, &[Unreachable], "Connection refused"),
    ] {
        let problems = problems(&options).await;
        assert!(!problems.is_empty(), "{text}");
        for EtcdProblem { kind, found, advice, .. } in problems {
            let shown = format!("{kind:?}: {found}; {advice}");
            assert!(kinds.contains(&kind) && shown.contains(text), "{text}: {shown}");
        }
    }
}

/// Two clusters of etcd would have two owners of a slot.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_uses_one_cluster_of_etcd() {
    let (mut first, second) = (Servers::start(1, &[]), Servers::start(1, &[]));
    connect(&first.options()).await;
    connect(&second.options()).await;
    let endpoints = [first.endpoint(0), second.endpoint(0)];
    let etcd = Etcd::new(&EtcdOptions::new(&endpoints).expect("endpoints")).expect("options");
    assert!(read(&etcd).await);
    first.kill(0);
    assert!(!read(&etcd).await && !read(&etcd).await && !read(&etcd).await && !read(&etcd).await);
    let is_other = |problem: &EtcdProblem| {
        problem.kind == ProblemKind::OtherCluster && problem.endpoint == second.endpoint(0)
    };
    assert!(etcd.problems().iter().any(is_other), "{:?}", etcd.problems());
    first.run(0);
    read_until(&etcd, |is_ok| is_ok).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_database_is_reported() {
    let servers = Servers::start(1, &["--quota-backend-bytes=300000".to_owned()]);
    connect(&servers.options()).await;
    let mut reports = Reports::default();
    let etcd = reports.client(&servers.options());
    let value = "v".repeat(100_000);
    let put = async |value: &str| {
        let (key, value) = (format!("{}x", keys().prefix()), value.to_owned());
        let writes = vec![Write::Put { key, value, lease: 0 }];
        let request = Request::Commit(Txn { compares: Vec::new(), writes });
        etcd.execute(&request, DEADLINE).await.map(|response| response.revision)
    };
    let granted = etcd.execute(&Request::Grant { ttl_s: 60 }, DEADLINE).await.expect("a lease");
    let Reply::Granted { lease, .. } = granted.reply else { panic!("{granted:?}") };
    let mut revision = 0;
    while let Ok(written) = put(&value).await {
        revision = written;
    }
    assert!(put(&value).await.is_err() && read(&etcd).await);
    // Nodes serve on.
    let kept = etcd.execute(&Request::KeepAlive { lease }, DEADLINE).await.expect("a response");
    assert_eq!(kept.reply, Reply::KeptAlive { ttl_s: 60 });
    reports.expect(ProblemKind::NoSpace, Operation::Commit).await;
    servers.etcdctl(&["compact", &revision.to_string()]);
    servers.etcdctl(&["defrag"]);
    servers.etcdctl(&["alarm", "disarm"]);
    put("v").await.expect("space");
    reports.expect_end(ProblemKind::NoSpace).await;
    reports.expect_none();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_majority_is_reported() {
    let mut servers = Servers::start(3, &[]);
    // A member accepts connections, but does not respond, before it has known a leader.
    for at in 0..3 {
        connect(&EtcdOptions::new(&[servers.endpoint(at)]).expect("an endpoint")).await;
    }
    let etcd = connect(&servers.options()).await;
    servers.kill(0);
    servers.kill(1);
    let is_without_leader = |problem: &EtcdProblem| problem.kind == ProblemKind::NoLeader;
    read_until(&etcd, |_| etcd.problems().iter().any(is_without_leader)).await;
    servers.run(0);
    read_until(&etcd, |is_ok| is_ok).await;
}
