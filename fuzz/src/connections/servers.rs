//! The servers that scripts talk to, and how it is seen that nothing is left of a script.

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

/// Nobody without a password may do anything; `all` is for us, and `ann` for scripts.
const USERS: &str = "
user default off
user all on >open ~* +@all
user ann on >sesame ~app:* +get +set +append +del +multi +exec +ping
";

/// Bytes of memory that a script may leave behind: buffers for the next ones, as far as they are
/// told of.
const LEFT_MOST: u64 = 4 << 20;

/// How often a server may turn us away while it has yet to see the end of a script, in which it may
/// have been told to do so.
const TRIES: usize = 100_000;

/// Two servers: one where everybody may do everything, and one with passwords.
pub(super) struct Servers {
    all: [One; 2],
    paths: Vec<PathBuf>,
    _folder: tempfile::TempDir,
    /// Sockets that are open while there are no connections.
    sockets: usize,
}

struct One {
    cache: Arc<Cache>,
    path: PathBuf,
    password: bool,
    memory: u64,
    _running: Running,
}

/// A connection that sees to a server.
struct Control(BufReader<UnixStream>);

impl Servers {
    /// The servers of this process. One script runs at a time.
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
            one.see_to_it();
            one.memory = one.cache.stats().memory;
        }
        servers.sockets = sockets();
        servers
    }

    /// A connection to one of all listeners.
    pub(super) fn connect(&self, listener: u8) -> UnixStream {
        let path = &self.paths[usize::from(listener) % self.paths.len()];
        let stream = UnixStream::connect(path).expect("a connection");
        stream.set_nonblocking(true).expect("a socket");
        stream
    }

    /// Lets the servers see what was sent before.
    pub(super) fn settle(&self) {
        // They may turn us away, if the script told them to.
        self.all.iter().for_each(|one| drop(one.connect()));
    }

    /// All connections of a script are gone: the servers answer, and hold nothing of it.
    pub(super) fn check(&self) {
        for one in &self.all {
            one.see_to_it();
            let memory = one.cache.stats().memory;
            assert!(memory <= one.memory + LEFT_MOST, "{} bytes grew to {memory}", one.memory);
        }
        // The servers may be about to close the last one.
        let closed = (0..TRIES).any(|_| {
            yield_now();
            sockets() <= self.sockets
        });
        assert!(closed, "{} sockets became {}", self.sockets, sockets());
    }
}

/// How many sockets are open.
fn sockets() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("descriptors");
    let links = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

impl One {
    /// A connection that may do everything, once there was an answer on it.
    fn connect(&self) -> io::Result<Control> {
        let stream = UnixStream::connect(&self.path)?;
        // A server that is silent for so long hangs.
        stream.set_read_timeout(Some(Duration::from_secs(8)))?;
        let mut control = Control(BufReader::new(stream));
        if self.password {
            control.expect("AUTH all open", "+OK\r\n")?;
        }
        control.expect("PING", "+PONG\r\n")?;
        Ok(control)
    }

    /// Waits until nobody else is connected, and makes everything what it was.
    fn see_to_it(&self) {
        let mut last = None;
        for _ in 0..TRIES {
            match self.connect().and_then(|mut control| control.restore()) {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the server hangs"),
                Err(error) => last = Some(error),
            }
        }
        panic!("the server does not come to rest: {last:?}");
    }
}

impl Control {
    /// The first line of an answer.
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

    /// How many connections there are.
    fn clients(&mut self) -> io::Result<usize> {
        let line = self.ask("CLIENT LIST")?;
        let len = line.strip_prefix('$').and_then(|len| len.trim_end().parse::<usize>().ok());
        let len = len.ok_or_else(|| io::Error::other(line))?;
        let mut list = vec![0; len + 2];
        self.0.read_exact(&mut list)?;
        Ok(list.split(|byte| *byte == b'\n').count() - 2)
    }

    /// What a script may have changed becomes what it was, if we are alone.
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
