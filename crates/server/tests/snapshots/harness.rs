//! A server with snapshots, and clients of all protocols.

use crate::served::{LOCAL, address, at, cache, info};
use nuthatch_cluster::boot_clock::SystemBootClock;
use nuthatch_cluster::lease::Permit;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_server::mrcache::Framing;
use nuthatch_server::state::{Debugging, Server, SnapshotMemory, SnapshotSource, Snapshots, Users};
use nuthatch_server::{Cluster, IoBackend, Options, Protocol, Running};
use nuthatch_snapshot::{StringListBuf, Value, WriterOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Ends a test that would hang.
const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(expected: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "expected within {PATIENCE:?}: {expected}");
        thread::yield_now();
    }
}

/// A folder with snapshots, and a server of them.
pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: Running,
}

/// Options of a site.
pub(crate) struct Setup<'a> {
    /// Name and prefix of each snapshot; the file is `NAME.nut`.
    pub(crate) snapshots: &'a [(&'a str, &'a str)],
    pub(crate) memory: SnapshotMemory,
    pub(crate) users: &'a str,
    pub(crate) threads: usize,
    pub(crate) io_backend: IoBackend,
    /// Whether it is a node of a cluster, which serves clients of Redis only. It has no slots.
    pub(crate) is_node: bool,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            snapshots: &[("users", "users:")],
            memory: SnapshotMemory::default(),
            users: "user default on nopass ~* +@all",
            threads: 1,
            io_backend: IoBackend::Auto,
            is_node: false,
        }
    }
}

/// Returns the file of a snapshot.
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.nut"))
}

/// Builds a snapshot with these entries, and renames it to its place.
pub(crate) fn build<'v>(path: &Path, entries: impl IntoIterator<Item = (String, Value<'v>)>) {
    build_with(path, &WriterOptions::new(), entries);
}

pub(crate) fn build_with<'v>(
    path: &Path,
    options: &WriterOptions,
    entries: impl IntoIterator<Item = (String, Value<'v>)>,
) {
    let mut writer = options.create(path).expect("a writer");
    for (key, value) in entries {
        writer.insert(key.as_bytes(), value).expect("an entry");
    }
    writer.finish().expect("a snapshot");
}

/// Builds a snapshot with a value of each type.
pub(crate) fn build_all_types(path: &Path) {
    let mut tags = StringListBuf::from_iter(["a", "b \"c\"", "é"]);
    let entries = [
        ("name", Value::String("Ada")),
        ("bytes", Value::Bytes(b"\x00\xff\r\n")),
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("age", Value::I64(-36)),
        ("score", Value::F64(0.25)),
        ("ids", Value::I64List(&[1, -2, 3])),
        ("scores", Value::F64List(&[0.5, f64::INFINITY])),
        ("vector", Value::F32List(&[0.1, 2.0])),
        ("tags", Value::StringList(tags.as_list())),
        ("none", Value::EmptyList),
    ];
    build(path, entries.map(|(key, value)| (key.to_owned(), value)));
}

impl Site {
    /// Starts a server whose snapshot `users` has a value of each type.
    pub(crate) fn with_all_types() -> Self {
        Self::start(&Setup::default(), |folder| build_all_types(&file(folder, "users")))
    }

    pub(crate) fn start(setup: &Setup<'_>, build: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        build(folder.path());
        let snapshots = open(folder.path(), setup).expect("snapshots");
        let users = Users::parse(setup.users).expect("users");
        let mut server = Server::new(cache()).with_users(users);
        server.snapshots = Some(snapshots);
        server.debug = Debugging::Local;
        server.cluster = setup.is_node.then(|| Arc::new(node(&server)));
        let listeners = [
            (Protocol::Resp, LOCAL),
            (Protocol::Memcache, LOCAL),
            (Protocol::Pmc, LOCAL),
            (Protocol::Mrcache(Framing::Len4), LOCAL),
        ];
        let count = if setup.is_node { 1 } else { listeners.len() };
        let listeners = listeners[..count].iter().map(at).collect();
        let options = Options::new(listeners).threads(setup.threads).io_backend(setup.io_backend);
        let server = Running::serve(server, &options).expect("a server");
        Self { folder, server }
    }

    /// Connects to the listener with this number.
    pub(crate) fn connect(&self, listener: usize) -> TcpStream {
        let stream = TcpStream::connect(address(&self.server, listener)).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    pub(crate) fn resp(&self) -> Resp {
        Resp { stream: BufReader::new(self.connect(0)) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        file(self.folder.path(), name)
    }
}

/// Returns a node without slots.
fn node(server: &Server) -> Cluster {
    let (cache, clock) = (Arc::clone(&server.cache), Arc::new(SystemBootClock));
    Cluster::new(NodeId::numbered(1), cache, Arc::new(Permit::default()), clock)
}

pub(crate) fn open(
    folder: &Path,
    setup: &Setup<'_>,
) -> Result<Snapshots, nuthatch_server::state::OpenError> {
    let sources = setup.snapshots.iter().map(|(name, prefix)| SnapshotSource {
        name: (*name).to_owned(),
        prefix: prefix.as_bytes().to_vec(),
        path: file(folder, name),
    });
    Snapshots::open(sources.collect(), setup.memory)
}

/// A client of Redis.
pub(crate) struct Resp {
    stream: BufReader<TcpStream>,
}

/// A reply, with the texts of strings, statuses and errors; errors keep their `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Null,
    Integer(i64),
    Text(String),
    List(Vec<Reply>),
}

impl Reply {
    #[track_caller]
    pub(crate) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            other => panic!("expected a text, found {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn list(self) -> Vec<Self> {
        match self {
            Self::List(list) => list,
            other => panic!("expected a list, found {other:?}"),
        }
    }
}

impl Resp {
    /// Sends a request of words and returns its reply.
    pub(crate) fn ask(&mut self, words: &str) -> Reply {
        self.ask_args(&words.split(' ').collect::<Vec<_>>())
    }

    pub(crate) fn ask_args(&mut self, args: &[impl AsRef<[u8]>]) -> Reply {
        self.send(args);
        self.read()
    }

    pub(crate) fn send(&mut self, args: &[impl AsRef<[u8]>]) {
        let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            let arg = arg.as_ref();
            bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            bytes.extend_from_slice(arg);
            bytes.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&bytes).expect("sent");
    }

    /// Reads a reply.
    pub(crate) fn read(&mut self) -> Reply {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("an answer");
        let line = line.trim_end_matches("\r\n");
        let (kind, rest) = line.split_at(1);
        match (kind, rest) {
            ("_", _) | ("$" | "*", "-1") => Reply::Null,
            (":", number) => Reply::Integer(number.parse().expect("a number")),
            ("$" | "=", len) => {
                let mut bytes = vec![0; len.parse::<usize>().expect("a length") + 2];
                self.stream.read_exact(&mut bytes).expect("an answer");
                bytes.truncate(bytes.len() - 2);
                Reply::Text(String::from_utf8_lossy(&bytes).into_owned())
            }
            ("*", len) => {
                Reply::List((0..len.parse().expect("a length")).map(|_| self.read()).collect())
            }
            ("-", _) => Reply::Text(line.to_owned()),
            (_, text) => Reply::Text(text.to_owned()),
        }
    }

    /// Returns this field of the line of `INFO` about a snapshot.
    #[track_caller]
    pub(crate) fn report(&mut self, snapshot: &str, field: &str) -> String {
        let line = info(self.stream.get_mut(), &format!("snapshot_{snapshot}"));
        let fields: Vec<_> = line.split(',').collect();
        let value = fields.iter().find_map(|one| one.strip_prefix(field)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {field} in {line}")).to_owned()
    }

    /// Waits until a field of the line about a snapshot has a value for which `is_done` holds.
    pub(crate) fn wait_for(&mut self, snapshot: &str, field: &str, is_done: impl Fn(&str) -> bool) {
        wait_until(field, || is_done(&self.report(snapshot, field)));
    }
}
