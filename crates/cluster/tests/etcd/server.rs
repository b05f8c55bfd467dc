//! Servers of etcd on this machine.

use nuthatch_cluster::etcd::{Etcd, EtcdOptions};
use nuthatch_cluster::request::Request;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Members of one cluster of etcd. Dropping it ends the processes.
pub(crate) struct Servers {
    folder: tempfile::TempDir,
    ports: Vec<(u16, u16)>,
    processes: Vec<Option<Child>>,
    arguments: Vec<String>,
    /// The options of `etcdctl` that it needs for these servers.
    control: Vec<String>,
}

impl Servers {
    /// Starts servers, with additional arguments, and waits until one responds.
    pub(crate) fn start(count: usize, arguments: &[String]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = free_ports(2 * count);
        let ports = ports.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        let processes = (0..count).map(|_| None).collect();
        let arguments = arguments.to_vec();
        let control = vec!["--command-timeout=20s".to_owned()];
        let mut servers = Self { folder, ports, processes, arguments, control };
        (0..count).for_each(|at| servers.run(at));
        servers
    }

    /// Starts the process of a server, on its data.
    pub(crate) fn run(&mut self, at: usize) {
        let has_tls = self.arguments.iter().any(|argument| argument.starts_with("--cert-file"));
        let scheme = if has_tls { "https" } else { "http" };
        let (client, peer) = self.ports[at];
        let client = format!("{scheme}://127.0.0.1:{client}");
        let name = |at: usize| format!("e{at}");
        let peers: Vec<String> = (self.ports.iter().enumerate())
            .map(|(at, (_, port))| format!("{}=http://127.0.0.1:{port}", name(at)))
            .collect();
        let log = std::fs::File::create(self.folder.path().join(format!("log{at}")));
        let mut command = Command::new("etcd");
        command
            .args(["--name", &name(at), "--data-dir"])
            .arg(self.folder.path().join(name(at)))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &format!("http://127.0.0.1:{peer}")])
            .args(["--initial-advertise-peer-urls", &format!("http://127.0.0.1:{peer}")])
            .args(["--initial-cluster", &peers.join(","), "--unsafe-no-fsync"])
            .args(&self.arguments)
            .stdout(Stdio::null())
            .stderr(log.expect("a file"));
        self.processes[at] = Some(command.spawn().expect("etcd is installed"));
    }

    /// Ends a process as a crash does.
    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(mut process) = self.processes[at].take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub(crate) fn process(&self, at: usize) -> &Child {
        self.processes[at].as_ref().expect("a running server")
    }

    pub(crate) fn options(&self) -> EtcdOptions {
        let endpoints: Vec<String> =
            self.ports.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
        EtcdOptions::new(&endpoints).expect("endpoints")
    }

    /// Returns the endpoint of a server, as `host:port`.
    pub(crate) fn endpoint(&self, at: usize) -> String {
        format!("127.0.0.1:{}", self.ports[at].0)
    }

    /// Adds options for `etcdctl`.
    pub(crate) fn control_with(&mut self, options: &[&str]) {
        self.control.extend(options.iter().map(|option| (*option).to_owned()));
    }

    /// Runs `etcdctl` with the first server.
    pub(crate) fn etcdctl(&self, arguments: &[&str]) {
        let output = self.try_etcdctl(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    pub(crate) fn try_etcdctl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.endpoint(0)]);
        let output = command.args(&self.control).args(arguments).output();
        output.expect("etcdctl is installed")
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        (0..self.processes.len()).for_each(|at| self.kill(at));
    }
}

/// Returns a client when etcd responds to it.
pub(crate) async fn connect(options: &EtcdOptions) -> Arc<Etcd> {
    let etcd = Arc::new(Etcd::new(options).expect("options"));
    let read = Request::Read("/ready".into());
    let mut last = None;
    for _ in 0..300 {
        match etcd.execute(&read, Duration::from_secs(2)).await {
            Ok(_) => return etcd,
            Err(failure) => last = Some(failure),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("etcd does not respond: {last:?}");
}

fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    listeners.iter().map(port).collect()
}
