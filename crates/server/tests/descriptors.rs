//! Tests of a server in a process that has no free descriptor. The limit is that of the whole
//! process, so these tests are a program of their own and run one after the other.

mod served;

use nuthatch_server::IoBackend;
use rustix::net::{AddressFamily, SocketType, connect as connect_to, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use served::{
    address, allow_descriptors, ask, connect, iterations, pass_time, serve, with_every_io_backend,
};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

with_every_io_backend! {
    clients_that_wait_for_a_descriptor_cause_no_iterations
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Maximum number of descriptors of this process.
const MAX_DESCRIPTORS: u64 = 128;

/// Opens files until no descriptor is free.
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

/// Creates a socket that becomes a connection without another descriptor.
fn unconnected() -> OwnedFd {
    socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket")
}

fn ping(socket: OwnedFd, address: SocketAddr) -> TcpStream {
    connect_to(&socket, &address).expect("a connection");
    let mut stream = TcpStream::from(socket);
    stream.write_all(b"PING\r\n").expect("sent");
    stream
}

/// Regression test: accepting failed and was requested again at once, endlessly.
fn clients_that_wait_for_a_descriptor_cause_no_iterations(io_backend: IoBackend) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    allow_descriptors();
    // Before accepting begins, because an accept that the kernel executes itself uses the limit of
    // the time when it was submitted.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(MAX_DESCRIPTORS), ..limit })
        .expect("a limit");
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
    // Two iterations answer this client, and accepting is tried again ten times a second.
    let max = 8 + 3 * start.elapsed().as_millis() as u64 / 100;
    assert!(after - before <= max, "{} iterations, expected at most {max}", after - before);
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

    // Another connection that ends frees a descriptor as well.
    let socket = unconnected();
    let _files = use_up();
    let mut waiting = ping(socket, address(&server, 0));
    drop(leaving);
    ask(&mut waiting, b"", b"+PONG\r\n");
    setrlimit(Resource::Nofile, limit).expect("a limit");
}
