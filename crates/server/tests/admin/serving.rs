//! A server with an admin endpoint, and requests to both.

use nuthatch_cache::{Cache, Options as CacheOptions};
use nuthatch_cluster::boot_clock::SystemBootClock;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_server::mrcache::Framing;
use nuthatch_server::state::{Server, SnapshotMemory, SnapshotSource, Snapshots};
use nuthatch_server::{Address, Cluster, Listener, Options, Protocol, Running};
use nuthatch_snapshot::Writer;
use nuthatch_tiered::{Options as DiskOptions, TieredCache};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn serve(threads: usize) -> Running {
    serve_at(&["127.0.0.1:0"], threads)
}

pub(crate) fn serve_at(admin: &[&str], threads: usize) -> Running {
    serve_with(&[Protocol::Resp], admin, threads)
}

/// Starts a server with a listener for each protocol, mrcache last, and without an admin endpoint.
pub(crate) fn serve_all_protocols() -> Running {
    let mrcache = Protocol::Mrcache(Framing::Len4);
    serve_with(&[Protocol::Resp, Protocol::Memcache, Protocol::Pmc, mrcache], &[], 1)
}

fn serve_with(protocols: &[Protocol], admin: &[&str], threads: usize) -> Running {
    let parse = |address: &&str| address.parse().expect("an address");
    let listener = |&protocol: &Protocol| Listener::new(protocol, parse(&"127.0.0.1:0"));
    let options = Options::new(protocols.iter().map(listener).collect());
    let options = options.admin(admin.iter().map(parse).collect()).threads(threads);
    let cache = Cache::new(CacheOptions::new().memory(64 << 20)).expect("a cache");
    Running::start(Arc::new(cache), &options).expect("a server")
}

/// Starts a server with a disk tier and a snapshot.
pub(crate) fn serve_with_disk(folder: &Path) -> Running {
    let any: Address = "127.0.0.1:0".parse().expect("an address");
    let options = Options::new(vec![Listener::new(Protocol::Resp, any.clone())]).admin(vec![any]);
    let disk = DiskOptions::new(folder.join("items"), 64 << 20);
    let disk = TieredCache::open(CacheOptions::new().memory(64 << 20), &disk).expect("a tier");
    let mut server = Server::new(Arc::clone(disk.cache()));
    server.disk = Some(Arc::new(disk));
    let path = folder.join("a.nut");
    Writer::create(&path).and_then(Writer::finish).expect("a snapshot");
    let source = SnapshotSource { name: "a".to_owned(), prefix: b"a:".to_vec(), path };
    let snapshots = Snapshots::open(vec![source], SnapshotMemory::default());
    server.snapshots = Some(snapshots.expect("a snapshot"));
    Running::serve(server, &options).expect("a server")
}

/// Starts a server that is a node of a cluster, and has no lease.
pub(crate) fn serve_in_cluster() -> Running {
    let any: Address = "127.0.0.1:0".parse().expect("an address");
    let options = Options::new(vec![Listener::new(Protocol::Resp, any.clone())]).admin(vec![any]);
    let cache = Arc::new(Cache::new(CacheOptions::new().memory(16 << 20)).expect("a cache"));
    let (id, clock) = (NodeId::numbered(1), Arc::new(SystemBootClock));
    let cluster = Cluster::new(id, Arc::clone(&cache), Arc::default(), clock);
    let mut server = Server::new(cache);
    server.cluster = Some(Arc::new(cluster));
    Running::serve(server, &options).expect("a server")
}

fn socket(address: &Address) -> SocketAddr {
    let Address::Tcp(address) = address else { panic!("an address of the network: {address}") };
    *address
}

/// Connects to the admin endpoint.
pub(crate) fn admin(server: &Running) -> TcpStream {
    TcpStream::connect(socket(&server.admin()[0])).expect("a connection")
}

/// Sends these bytes and returns all that the server sends until the connection ends.
pub(crate) fn ask(stream: &mut (impl Read + Write), request: &str) -> String {
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, then the end");
    answer
}

/// Returns the head and the body of the response to `GET`.
pub(crate) fn get(server: &Running, path: &str, accept: &str) -> (String, String) {
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
    );
    let answer = ask(&mut admin(server), &request);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

/// A client of Redis.
pub(crate) struct Resp {
    stream: BufReader<TcpStream>,
    /// The number of received bytes.
    pub(crate) received: usize,
}

impl Resp {
    pub(crate) fn connect(server: &Running) -> Self {
        let stream =
            TcpStream::connect(socket(&server.listeners()[0].address)).expect("a connection");
        Self { stream: BufReader::new(stream), received: 0 }
    }

    /// Sends a request of words, and returns the numbers and texts of its reply in their order.
    pub(crate) fn ask(&mut self, words: &str) -> Vec<String> {
        self.stream.get_mut().write_all(format!("{words}\r\n").as_bytes()).expect("sent");
        let mut leaves = Vec::new();
        self.read(&mut leaves);
        leaves
    }

    fn read(&mut self, leaves: &mut Vec<String>) {
        let mut line = String::new();
        self.received += self.stream.read_line(&mut line).expect("an answer");
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "*" => (0..rest.parse().expect("a length")).for_each(|_| self.read(leaves)),
            "$" => {
                // The string and the end of its line.
                let mut bytes = vec![0; rest.parse::<usize>().map_or(0, |len| len + 2)];
                self.stream.read_exact(&mut bytes).expect("an answer");
                self.received += bytes.len();
                leaves.push(String::from_utf8(bytes).expect("a text").trim_end().to_owned());
            }
            _ => leaves.push(rest.to_owned()),
        }
    }
}
