//! Nodes of a cluster: servers on this machine, with members over an etcd in memory.

use crate::served::{LOCAL, address, at, cache, connect, connect_to};
use nuthatch_cluster::boot_clock::{BootClock, BootTime, ManualBootClock};
use nuthatch_cluster::keys::Keys;
use nuthatch_cluster::lease::Permit;
use nuthatch_cluster::member::{Command, Event, Input, Member, MemberConfig, Output};
use nuthatch_cluster::memory_etcd::MemoryEtcd;
use nuthatch_cluster::node::{Addresses, Node as Announced};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::slot_of;
use nuthatch_server::state::{Server, Users};
use nuthatch_server::{Cluster, MoveReport, NodeAccess, Options, Protocol, Running, Tls};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) const STEP: Duration = Duration::from_millis(20);

/// The maximum number of steps until something is expected to be the case.
const MAX_STEPS: usize = 20_000;

/// How long a step of a test waits for the end of a transfer.
const MOVE_PAUSE: Duration = Duration::from_millis(5);

/// A node: a server, and its member of the cluster.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) running: Running,
    pub(crate) cluster: Arc<Cluster>,
    permit: Arc<Permit>,
    member: Member,
    /// Requests of operators.
    commands: Receiver<Command>,
    watch: Option<(u64, i64)>,
    inputs: VecDeque<Input>,
    /// The ends of transfers, and whether one is expected.
    reports: Receiver<MoveReport>,
    is_moving: bool,
    /// Whether its member runs, and reaches etcd.
    pub(crate) is_connected: bool,
    /// Whether its requests to etcd are lost.
    pub(crate) is_cut: bool,
}

/// A clock that jumps by an hour after some calls, as for a process that was stopped.
#[derive(Default)]
pub(crate) struct Clock {
    time: ManualBootClock,
    /// The number of calls before the jump; 0 for none.
    pub(crate) calls_before_jump: AtomicU64,
    has_jumped: AtomicBool,
}

impl Clock {
    pub(crate) fn advance(&self, by: Duration) {
        self.time.advance(by);
    }
}

impl BootClock for Clock {
    fn now(&self) -> BootTime {
        if self.has_jumped.load(Ordering::Relaxed) {
            return self.time.now().plus(Duration::from_hours(1));
        }
        let calls = self.calls_before_jump.load(Ordering::Relaxed);
        if calls > 0 {
            self.calls_before_jump.store(calls - 1, Ordering::Relaxed);
            self.has_jumped.store(calls == 1, Ordering::Relaxed);
        }
        self.time.now()
    }
}

/// An etcd in memory, and the nodes that use it.
#[derive(Default)]
pub(crate) struct Nodes {
    etcd: MemoryEtcd,
    pub(crate) clock: Arc<Clock>,
    pub(crate) all: Vec<Node>,
    /// Whether nodes serve on while etcd cannot be reached.
    pub(crate) serves_without_etcd: bool,
    /// How nodes connect to each other. With a password, all clients log in.
    pub(crate) access: NodeAccess,
    /// Whether nodes forward requests of RESP.
    pub(crate) forwards: bool,
    /// The users of all nodes.
    pub(crate) users: &'static str,
    /// The address that the next node announces, instead of its own.
    pub(crate) announced: Option<String>,
    /// The certificate of the nodes, which announce an address with TLS then.
    pub(crate) tls: Option<Tls>,
    /// The replies that each client has received, which uses the nodes meanwhile. No step begins
    /// before all have received another one, or have waited for as long as the step takes: a permit
    /// must not end while the machine executes another thread than that of a client.
    pub(crate) replies: Vec<Arc<AtomicU64>>,
}

/// Starts a server of a node, without TLS and perhaps with it.
fn serve(cluster: &Arc<Cluster>, mut server: Server, tls: Option<Tls>) -> Running {
    server.cluster = Some(Arc::clone(cluster));
    let mut listeners = vec![at(&(Protocol::Resp, LOCAL)), at(&(Protocol::Memcache, LOCAL))];
    let mut options = match tls {
        None => Options::new(listeners),
        Some(tls) => {
            listeners.push(at(&(Protocol::Resp, LOCAL)).with_tls());
            Options::new(listeners).tls(tls)
        }
    };
    options.threads = 1;
    Running::serve(server, &options).expect("a server")
}

impl Nodes {
    /// Starts this many nodes, and waits until they share the slots.
    pub(crate) fn start(count: usize) -> Self {
        let mut nodes = Self::default();
        nodes.begin(count);
        nodes
    }

    /// Starts this many nodes, the first ones, and waits until they share the slots.
    pub(crate) fn begin(&mut self, count: usize) {
        self.clock.advance(Duration::from_secs(100));
        (0..count).for_each(|_| self.add());
        self.settle();
    }

    /// Starts one more node.
    pub(crate) fn add(&mut self) {
        let id = NodeId::numbered(self.all.len() as u32 + 1);
        let (cache, permit) = (cache(), Arc::new(Permit::default()));
        let clock: Arc<dyn BootClock> = self.clock.clone();
        let cluster = Cluster::new(id, cache.clone(), permit.clone(), clock);
        let cluster = cluster.with_forwarding(self.forwards);
        cluster.set_access(self.access.clone());
        let cluster = Arc::new(cluster);
        let (sender, commands) = channel();
        cluster.connect_member(move |command| sender.send(command).expect("a node"));
        let mut users = Users::parse(self.users).expect("users");
        if let Some(password) = &self.access.password {
            users.require_password(password.as_bytes());
        }
        let server = Server::new(cache).with_users(users);
        let running = serve(&cluster, server, self.tls.clone());
        let own = address(&running, if self.tls.is_some() { 2 } else { 0 }).to_string();
        let client = self.announced.take().unwrap_or(own);
        let node = Announced::new(id, Addresses { client, ..Addresses::default() });
        let mut config = MemberConfig::new(Keys::new("test").expect("a name"), node);
        config.max_moving_slots = 16_384;
        config.serves_without_etcd = self.serves_without_etcd;
        let member = Member::new(config);
        let (send, reports) = channel();
        cluster.report_moves_to(move |report| {
            // The test may have ended.
            let _ = send.send(report);
        });
        self.all.push(Node {
            id,
            running,
            cluster,
            permit,
            member,
            watch: None,
            inputs: VecDeque::new(),
            reports,
            is_moving: false,
            commands,
            is_connected: true,
            is_cut: false,
        });
    }

    /// Lets time pass until nothing changes any more.
    pub(crate) fn settle(&mut self) {
        self.pass(Duration::from_secs(4));
    }

    /// Lets time pass, in steps.
    pub(crate) fn pass(&mut self, time: Duration) {
        for _ in 0..time.as_millis() / STEP.as_millis() {
            self.clock.advance(STEP);
            self.etcd.expire(self.clock.now());
            for node in self.all.iter_mut().filter(|node| node.is_connected) {
                node.advance(&mut self.etcd, &*self.clock);
            }
            self.wait_for_clients();
        }
    }

    fn wait_for_clients(&self) {
        let before: Vec<u64> =
            self.replies.iter().map(|replies| replies.load(Ordering::Relaxed)).collect();
        let start = Instant::now();
        let is_waiting = || {
            let mut all = self.replies.iter().zip(&before);
            all.any(|(replies, before)| replies.load(Ordering::Relaxed) == *before)
        };
        while is_waiting() && start.elapsed() < STEP {
            std::thread::yield_now();
        }
    }

    /// Passes a request of an operator to a node.
    pub(crate) fn command(&mut self, node: usize, command: Command) {
        self.all[node].inputs.push_back(Input::Command(command));
    }

    /// Lets time pass until something is the case.
    pub(crate) fn pass_until(&mut self, is_it: impl Fn(&Self) -> bool) {
        for _ in 0..MAX_STEPS {
            if is_it(self) {
                return;
            }
            self.pass(STEP);
        }
        panic!("it is not the case after {MAX_STEPS} steps");
    }

    /// Returns the number of the node that owns the slot of a key, as the first node knows it.
    pub(crate) fn owner(&self, key: &str) -> usize {
        let map = self.all[0].member.map();
        let owner = map.ownership(slot_of(key.as_bytes())).expect("an owner").owner;
        self.all.iter().position(|node| node.id == owner).expect("a node")
    }

    /// Returns a key whose slot this node owns; keys with different numbers belong to different
    /// slots.
    pub(crate) fn key_of(&self, node: usize, number: usize) -> String {
        let mut found = (0..).map(|at| format!("key{at}")).filter(|key| self.owner(key) == node);
        found.nth(number).expect("a key")
    }

    /// Returns the reply to a request of a new connection to a node.
    pub(crate) fn ask(&self, node: usize, request: &str) -> String {
        self.client(node).ask(request)
    }

    /// Connects to a node as a client of memcached.
    pub(crate) fn memcached(&self, node: usize) -> Client {
        Client(connect_to(&self.all[node].running, 1))
    }

    pub(crate) fn client(&self, node: usize) -> Client {
        let mut client = Client(connect(&self.all[node].running));
        if let Some(password) = &self.access.password {
            assert_eq!(client.ask(&format!("AUTH {password}")), "+OK");
        }
        client
    }

    /// Returns the reply to a request once the slot is served: its items are dropped first.
    pub(crate) fn ask_served(&self, node: usize, request: &str) -> String {
        let mut client = self.client(node);
        loop {
            let reply = client.ask(request);
            if reply != "-CLUSTERDOWN Hash slot not served" {
                return reply;
            }
        }
    }

    /// Returns the address of a node.
    pub(crate) fn address(&self, node: usize) -> String {
        address(&self.all[node].running, 0).to_string()
    }
}

impl Node {
    fn advance(&mut self, etcd: &mut MemoryEtcd, clock: &dyn BootClock) {
        let mut inputs = std::mem::take(&mut self.inputs);
        inputs.push_back(Input::Tick);
        // Threads send the items, at their own speed. The clock of the test stands still meanwhile.
        if self.is_moving
            && let Ok(report) = self.reports.recv_timeout(MOVE_PAUSE)
        {
            self.is_moving = false;
            inputs.push_back(into_input(report));
        }
        inputs.extend(self.commands.try_iter().map(Input::Command));
        loop {
            if inputs.is_empty()
                && !self.is_cut
                && let Some((watch, from)) = self.watch
                && from <= etcd.revision()
            {
                let (revision, changes) = (etcd.revision(), etcd.changes(from).expect("kept"));
                self.watch = Some((watch, revision + 1));
                inputs.push_back(Input::Changes { watch, revision, changes });
            }
            let Some(input) = inputs.pop_front() else { return };
            self.member.handle(clock.now(), input);
            while let Some(output) = self.member.next_output() {
                match output {
                    Output::Call { .. } if self.is_cut => {}
                    Output::Call { call, request, .. } => {
                        let result = etcd.execute(clock.now(), &request);
                        inputs.push_back(Input::Response { call, result });
                    }
                    Output::Watch { watch, from } => self.watch = Some((watch, from)),
                    Output::Permit(until) => self.permit.set(until),
                    Output::PermitWithoutLease(until) => self.permit.extend_without_lease(until),
                    Output::Event(event) => {
                        self.is_moving |= matches!(event, Event::MoveOut { .. });
                        self.is_moving &= !matches!(event, Event::MoveCancelled { .. });
                        self.cluster.handle(&self.member, event);
                    }
                }
            }
        }
    }
}

fn into_input(report: MoveReport) -> Input {
    match report {
        MoveReport::Finished { transfer } => Input::MoveFinished { transfer },
        MoveReport::Failed { transfer } => Input::MoveFailed { transfer },
    }
}

/// A connection to a node.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    /// Sends an inline command. Returns the first line of the reply, with the content of a string.
    pub(crate) fn ask(&mut self, request: &str) -> String {
        self.0.write_all(format!("{request}\r\n").as_bytes()).expect("sent");
        self.line()
    }

    /// Reads a line, and the content of a string after it.
    pub(crate) fn line(&mut self) -> String {
        let head = self.until_line_end();
        match head.strip_prefix('$').and_then(|len| len.parse::<usize>().ok()) {
            Some(len) => {
                let mut text = vec![0; len + 2];
                self.0.read_exact(&mut text).expect("an answer");
                String::from_utf8(text).expect("text").trim_end().to_owned()
            }
            None => head,
        }
    }

    fn until_line_end(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).expect("an answer");
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("text").trim_end().to_owned()
    }
}
