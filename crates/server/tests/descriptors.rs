//! A server in a process that has no descriptor left. The limit is that of the whole process, so
//! that these tests have one of their own, and run one after the other.

mod served;

use nuthatch_server::IoBackend;
use rustix::net::{AddressFamily, SocketType, connect as connect_to, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use served::{
    address, allow_descriptors, ask, connect, iterations, over_every_reactor, pass_time, serve,
};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

over_every_reactor! {
    clients_wait_for_a_descriptor_without_turns
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Descriptors of this process.
const MOST: u64 = 128;

/// Opens files until there is no descriptor left.
fn use_up() -> Vec<File> {
    let mut files = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => files.push(file),
            Err(error) => {
                let errno = rustix::io::Errno::MFILE.raw_os_error();
                assert_eq!(error.raw_os_error(), Some(errno), "{error}");
                return files;
            }
        }
    }
}

/// A socket that needs no descriptor any more to become a connection.
fn unconnected() -> OwnedFd {
    socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket")
}

fn ping(socket: OwnedFd, address: SocketAddr) -> TcpStream {
    connect_to(&socket, &address).expect("a connection");
    let mut stream = TcpStream::from(socket);
    stream.write_all(b"PING\r\n").expect("sent");
    stream
}

/// Accepting failed and was asked for again at once, for ever.
fn clients_wait_for_a_descriptor_without_turns(io_backend: IoBackend) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    allow_descriptors();
    // Before accepting begins: what the kernel accepts by itself keeps to the limit of then.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(MOST), ..limit }).expect("a limit");
    let (server, other) = (serve(io_backend), serve(io_backend));
    let (mut control, mut leaving) = (connect(&server), connect(&server));
    let mut clock = connect(&other);
    for stream in [&mut control, &mut leaving, &mut clock] {
        ask(stream, b"PING\r\n", b"+PONG\r\n");
    }

    let sockets: Vec<_> = (0..3).map(|_| unconnected()).collect();
    let files = use_up();
    let mut waiting: Vec<_> =
        sockets.into_iter().map(|socket| ping(socket, address(&server, 0))).collect();
    let (start, before) = (Instant::now(), iterations(&mut control));
    pass_time(&mut clock, 2000);
    let after = iterations(&mut control);
    // Two turns answer us, and accepting is tried again ten times a second.
    let most = 8 + 3 * start.elapsed().as_millis() as u64 / 100;
    assert!(after - before <= most, "{} turns, expected at most {most}", after - before);
    for stream in &mut waiting {
        stream.set_nonblocking(true).expect("a socket");
        let read = stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(ErrorKind::WouldBlock));
        stream.set_nonblocking(false).expect("a socket");
    }
    drop(files);
    for stream in &mut waiting {
        ask(stream, b"", b"+PONG\r\n");
    }

    // Another connection that goes makes room as well.
    let socket = unconnected();
    let _files = use_up();
    let mut waiting = ping(socket, address(&server, 0));
    drop(leaving);
    ask(&mut waiting, b"", b"+PONG\r\n");
    setrlimit(Resource::Nofile, limit).expect("a limit");
}
