//! The servers of the fuzz target, and checks that they release the resources of each script.

use nuthatch_cache::{Cache, Options as CacheOptions};
use nuthatch_server::mrcache::Framing;
use nuthatch_server::state::{Server, Users};
use nuthatch_server::{Address, Listener, Options, Protocol, Running};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::yield_now;
use std::time::Duration;

const PROTOCOLS: [Protocol; 5] = [
    Protocol::Resp,
    Protocol::Memcache,
    Protocol::Pmc,
    Protocol::Mrcache(Framing::Len4),
    Protocol::Mrcache(Framing::Ver6),
];

/// Clients without a password have no permissions. The checks use `all`, and scripts use `ann`.
const USERS: &str = "
user default off
user all on >open ~* +@all
user ann on >sesame ~app:* +get +set +append +del +multi +exec +ping
";

/// Maximum growth of the memory in bytes after a script: buffers that are kept for reuse, as far as
/// the cache reports them.
const MAX_GROWTH_BYTES: u64 = 4 << 20;

/// Maximum number of attempts to connect. A server may refuse connections until it has processed
/// the end of a script, since the script may have lowered the maximum number of clients.
const MAX_ATTEMPTS: usize = 100_000;

/// Two servers: one without authentication, and one with passwords.
pub(super) struct Servers {
    all: [One; 2],
    paths: Vec<PathBuf>,
    _folder: tempfile::TempDir,
    /// Number of open sockets without any connections.
    sockets: usize,
}

struct One {
    cache: Arc<Cache>,
    path: PathBuf,
    password: bool,
    memory: u64,
    _running: Running,
}

/// A control connection that checks and resets a server.
struct Control(BufReader<UnixStream>);

impl Servers {
    /// Locks and returns the servers of this process. Only one script runs at a time.
    pub(super) fn get() -> MutexGuard<'static, Self> {
        static SERVERS: OnceLock<Mutex<Servers>> = OnceLock::new();
        let servers = SERVERS.get_or_init(|| Mutex::new(Self::start()));
        servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut paths = Vec::new();
        let all = [false, true].map(|password| {
            let mut listeners = Vec::new();
            for protocol in PROTOCOLS {
                let path = folder.path().join(paths.len().to_string());
                listeners.push(Listener::new(protocol, Address::Unix(path.clone())));
                paths.push(path);
            }
            let path = paths[paths.len() - PROTOCOLS.len()].clone();
            let cache = Cache::new(CacheOptions::new().memory(16 << 20)).expect("a cache");
            let cache = Arc::new(cache);
            let users = Users::parse(if password { USERS } else { "" }).expect("users");
            let server = Server::new(Arc::clone(&cache)).with_users(users);
            let running = Running::serve(server, &Options::new(listeners)).expect("a server");
            One { cache, path, password, memory: 0, _running: running }
        });
        let mut servers = Self { all, paths, _folder: folder, sockets: 0 };
        for one in &mut servers.all {
            one.reset();
            one.memory = one.cache.stats().memory;
        }
        servers.sockets = sockets();
        servers
    }

    /// Connects to one of the listeners of all servers.
    pub(super) fn connect(&self, listener: u8) -> UnixStream {
        let path = &self.paths[usize::from(listener) % self.paths.len()];
        let stream = UnixStream::connect(path).expect("a connection");
        stream.set_nonblocking(true).expect("a socket");
        stream
    }

    /// Makes the servers process the previous input.
    pub(super) fn settle(&self) {
        // A server may refuse the connection if the script has lowered its limits.
        self.all.iter().for_each(|one| drop(one.connect()));
    }

    /// Asserts that the servers reply and have released the resources of a script. The caller
    /// closes all connections of the script first.
    pub(super) fn check(&self) {
        for one in &self.all {
            one.reset();
            let memory = one.cache.stats().memory;
            assert!(
                memory <= one.memory + MAX_GROWTH_BYTES,
                "{} bytes grew to {memory}",
                one.memory
            );
        }
        // The servers may be about to close the last connection.
        let closed = (0..MAX_ATTEMPTS).any(|_| {
            yield_now();
            sockets() <= self.sockets
        });
        assert!(closed, "{} sockets became {}", self.sockets, sockets());
    }
}

/// Returns the number of open sockets of this process.
fn sockets() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("descriptors");
    let links = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

impl One {
    /// Connects with all permissions, and waits for a first reply.
    fn connect(&self) -> io::Result<Control> {
        let stream = UnixStream::connect(&self.path)?;
        // A server without a reply within this time hangs.
        stream.set_read_timeout(Some(Duration::from_secs(8)))?;
        let mut control = Control(BufReader::new(stream));
        if self.password {
            control.expect("AUTH all open", "+OK\r\n")?;
        }
        control.expect("PING", "+PONG\r\n")?;
        Ok(control)
    }

    /// Waits until no other client is connected, and resets the server.
    fn reset(&self) {
        let mut last = None;
        for _ in 0..MAX_ATTEMPTS {
            match self.connect().and_then(|mut control| control.restore()) {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the server hangs"),
                Err(error) => last = Some(error),
            }
        }
        panic!("the server does not return to its initial state: {last:?}");
    }
}

impl Control {
    /// Sends a request, and returns the first line of the reply.
    fn ask(&mut self, request: &str) -> io::Result<String> {
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line)
    }

    fn expect(&mut self, request: &str, expected: &str) -> io::Result<()> {
        let found = self.ask(request)?;
        if found == expected { Ok(()) } else { Err(io::Error::other(found)) }
    }

    /// Returns the number of connected clients.
    fn clients(&mut self) -> io::Result<usize> {
        let line = self.ask("CLIENT LIST")?;
        let len = line.strip_prefix('$').and_then(|len| len.trim_end().parse::<usize>().ok());
        let len = len.ok_or_else(|| io::Error::other(line))?;
        let mut list = vec![0; len + 2];
        self.0.read_exact(&mut list)?;
        Ok(list.split(|byte| *byte == b'\n').count() - 2)
    }

    /// Resets the data and settings that a script may have changed. Fails if another client is
    /// connected.
    fn restore(&mut self) -> io::Result<()> {
        let settings = "CONFIG SET timeout 0 maxclients 10000 slowlog-log-slower-than 10000 \
                        slowlog-max-len 128 proto-max-bulk-len 512mb latency-tracking yes";
        for request in ["FLUSHALL", settings, "SLOWLOG RESET"] {
            self.expect(request, "+OK\r\n")?;
        }
        match self.clients()? {
            1 => Ok(()),
            others => Err(io::Error::other(format!("{others} connections"))),
        }
    }
}
