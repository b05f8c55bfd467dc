//! Properties of all reactors.

use super::{BUFFER_LEN, Backend, Event, Filled, Number, Reactor, Socket};
use crate::output::Outgoing;
use nuthatch_uring::{OwnedSends, RingOptions, SocketRing};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socket, socketpair};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A module for each backend with all tests.
macro_rules! with_every_backend {
    ($($test:ident)*) => {
        mod io_uring {
            $(#[test] fn $test() { super::$test(super::Driver::new(super::Backend::Uring)); })*
        }
        mod epoll {
            $(#[test] fn $test() { super::$test(super::Driver::new(super::Backend::Epoll)); })*
        }
    };
}

with_every_backend! {
    each_connection_is_an_event
    a_socket_that_does_not_listen_does_not_accept
    bytes_arrive_before_the_end
    returned_buffers_are_filled_again
    without_a_free_buffer_receiving_stops
    fewer_buffers_are_used_while_memory_is_short
    receiving_continues_after_a_pause
    bytes_beyond_the_socket_buffer_are_sent_later
    sending_to_a_closed_peer_fails
    bytes_are_received_while_a_send_is_pending
    a_shutdown_ends_pending_operations
    a_socket_is_closed_with_its_last_event
    operations_on_other_files_are_errors
    a_connection_that_always_sends_does_not_starve_others
    several_wake_calls_are_one_event
    a_wait_ends_at_its_timeout
}

const BUFFERS: u16 = 4;

/// More bytes than a socket accepts without being read.
const TOO_MUCH: usize = 32 << 20;

/// The time after which a test that waits for an event fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// A reactor, and its events that were not examined yet.
struct Driver {
    reactor: Reactor,
    events: Vec<Event>,
}

impl Driver {
    fn new(kind: Backend) -> Self {
        let reactor = Reactor::new(kind, BUFFERS).expect("a reactor");
        Self { reactor, events: Vec::new() }
    }

    /// Returns the next event.
    #[track_caller]
    fn next(&mut self) -> Event {
        // A wait may return without an event.
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if self.events.is_empty() {
                let second = Some(Duration::from_secs(1));
                self.reactor.wait(second, &mut self.events).expect("a wait");
            }
            if !self.events.is_empty() {
                return self.events.remove(0);
            }
        }
        panic!("no event");
    }

    /// Checks that there is no event.
    #[track_caller]
    fn nothing(&mut self) {
        for _ in 0..3 {
            self.reactor.wait(Some(Duration::ZERO), &mut self.events).expect("a wait");
        }
        assert!(self.events.is_empty(), "{:?}", self.events);
    }

    /// Returns what was received next, and whether the operation continues. Returns the buffer to
    /// the reactor.
    #[track_caller]
    fn received(&mut self) -> (io::Result<Vec<u8>>, bool) {
        match self.next() {
            Event::Received { bytes, more, .. } => (bytes.map(|filled| self.take(filled)), more),
            event => panic!("{event:?}"),
        }
    }

    fn take(&mut self, filled: Option<Filled>) -> Vec<u8> {
        let Some(filled) = filled else { return Vec::new() };
        let bytes = self.reactor.bytes(&filled).to_vec();
        self.reactor.give_back(filled);
        bytes
    }

    /// Returns the bytes of the next send operation, and its result.
    #[track_caller]
    fn sent(&mut self) -> (Vec<u8>, io::Result<()>) {
        match self.next() {
            Event::Sent { outgoing: Outgoing::Bytes(buffer), result, .. } => (buffer, result),
            event => panic!("{event:?}"),
        }
    }

    fn receive(&mut self, socket: &Socket, number: Number) {
        self.reactor.receive(socket, number).expect("receives");
    }

    fn send(&mut self, socket: &Socket, number: Number, bytes: &[u8]) {
        self.reactor.send(socket, number, Outgoing::Bytes(bytes.to_vec())).expect("sends");
    }
}

fn pair() -> (Socket, UnixStream) {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None).expect("sockets");
    (Socket::new(ours), theirs.into())
}

/// Checks that a result is this error.
#[track_caller]
fn is<T: std::fmt::Debug>(result: &io::Result<T>, errno: Errno) {
    let error = result.as_ref().expect_err("an error");
    assert_eq!(error.raw_os_error(), Some(errno.raw_os_error()), "{error}");
}

fn each_connection_is_an_event(mut driver: Driver) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let listener = Socket::new(listener.into());
    driver.reactor.accept(&listener, 7).expect("accepts");
    driver.nothing();
    for _ in 0..3 {
        let clients: Vec<_> = (0..100).map(|_| TcpStream::connect(address)).collect();
        for _ in &clients {
            let Event::Accepted { listener: 7, socket: Ok(socket), more: true } = driver.next()
            else {
                panic!("a connection");
            };
            let flags = rustix::io::fcntl_getfd(socket).expect("flags");
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
        driver.nothing();
    }
}

fn a_socket_that_does_not_listen_does_not_accept(mut driver: Driver) {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let ours = Socket::new(socket(family, kind, None).expect("a socket"));
    for _ in 0..2 {
        driver.reactor.accept(&ours, 3).expect("accepts");
        let Event::Accepted { listener: 3, socket: Err(_), more: false } = driver.next() else {
            panic!("an error");
        };
        driver.nothing();
    }
}

fn bytes_arrive_before_the_end(mut driver: Driver) {
    let (ours, mut theirs) = pair();
    driver.receive(&ours, 5);
    driver.nothing();
    for round in 0..10 {
        let bytes = [round; 3];
        theirs.write_all(&bytes).expect("sent");
        let (received, more) = driver.received();
        assert_eq!((&received.expect("bytes")[..], more), (&bytes[..], true));
        driver.nothing();
    }
    drop(theirs);
    let (received, more) = driver.received();
    assert_eq!((received.expect("the end").len(), more), (0, false));
    driver.nothing();
}

fn returned_buffers_are_filled_again(mut driver: Driver) {
    let (ours, mut theirs) = pair();
    driver.receive(&ours, 0);
    for round in 0..10 * BUFFERS {
        let bytes = vec![round as u8; BUFFER_LEN];
        theirs.write_all(&bytes).expect("sent");
        let mut all = Vec::new();
        while all.len() < bytes.len() {
            let (received, more) = driver.received();
            all.extend(received.expect("bytes"));
            assert!(more);
        }
        assert!(all == bytes);
    }
}

fn without_a_free_buffer_receiving_stops(mut driver: Driver) {
    let (ours, mut theirs) = pair();
    driver.receive(&ours, 0);
    let mut held = Vec::new();
    for number in 0..=BUFFERS {
        theirs.write_all(&[number as u8]).expect("sent");
        match driver.next() {
            Event::Received { bytes: Ok(Some(filled)), more: true, .. } => held.push(filled),
            Event::Received { bytes, more, .. } => {
                assert_eq!((number, more), (BUFFERS, false));
                is(&bytes, Errno::NOBUFS);
            }
            event => panic!("{event:?}"),
        }
    }
    driver.nothing();
    for (number, filled) in held.into_iter().enumerate() {
        assert_eq!(driver.take(Some(filled)), [number as u8], "it was not written to since");
    }
    driver.receive(&ours, 0);
    assert_eq!(driver.received().0.expect("the rest"), [BUFFERS as u8]);
}

/// As many buffers as have memory can be filled at the same time.
fn fewer_buffers_are_used_while_memory_is_short(mut driver: Driver) {
    const MANY: u16 = 64;
    let reactor = match driver.reactor {
        Reactor::Uring(_) => Reactor::new(Backend::Uring, MANY),
        Reactor::Epoll(_) => Reactor::new(Backend::Epoll, MANY),
    };
    driver.reactor = reactor.expect("a reactor");
    let (ours, mut theirs) = pair();
    driver.receive(&ours, 0);
    for (little, expected) in [(false, 64), (true, 16), (true, 16), (false, 64)] {
        driver.reactor.save_memory(little);
        for round in 0..MANY as u8 {
            theirs.write_all(&[round]).expect("sent");
            assert_eq!(driver.received().0.expect("bytes"), [round]);
        }
        assert_eq!(driver.reactor.buffers_len(), usize::from(expected) * BUFFER_LEN);
        let held: Vec<_> = (0..expected)
            .map(|number| {
                theirs.write_all(&[number]).expect("sent");
                match driver.next() {
                    Event::Received { bytes: Ok(Some(filled)), .. } => filled,
                    event => panic!("{event:?}"),
                }
            })
            .collect();
        for (number, filled) in held.into_iter().enumerate() {
            assert_eq!(driver.take(Some(filled)), [number as u8]);
        }
    }
}

fn receiving_continues_after_a_pause(mut driver: Driver) {
    let (ours, mut theirs) = pair();
    for round in 0..5 {
        driver.receive(&ours, 1);
        theirs.write_all(&[round]).expect("sent");
        assert_eq!(driver.received().0.expect("bytes"), [round]);
        driver.reactor.pause(1).expect("pauses");
        let (received, more) = driver.received();
        is(&received, Errno::CANCELED);
        assert!(!more);
        theirs.write_all(b"+").expect("sent");
        driver.nothing();
        driver.receive(&ours, 1);
        assert_eq!(driver.received().0.expect("what came in the pause"), b"+");
        driver.reactor.pause(1).expect("pauses");
        is(&driver.received().0, Errno::CANCELED);
    }
    // There is no operation to stop.
    driver.reactor.pause(1).expect("pauses");
    driver.reactor.pause(77).expect("pauses");
    driver.nothing();
}

fn bytes_beyond_the_socket_buffer_are_sent_later(mut driver: Driver) {
    let (ours, mut theirs) = pair();
    let bytes: Vec<u8> = (0..TOO_MUCH).map(|at| (at / 4096) as u8).collect();
    for _ in 0..2 {
        driver.send(&ours, 9, &bytes);
        driver.nothing();
        let reader = std::thread::spawn(move || {
            let mut read = vec![0; TOO_MUCH];
            theirs.read_exact(&mut read).expect("all of it");
            (read, theirs)
        });
        let (buffer, result) = driver.sent();
        result.expect("it is sent");
        let (read, back) = reader.join().expect("no panic");
        assert!(buffer == bytes && read == bytes);
        theirs = back;
    }
    driver.nothing();
}

fn sending_to_a_closed_peer_fails(mut driver: Driver) {
    let (ours, theirs) = pair();
    drop(theirs);
    for _ in 0..3 {
        driver.send(&ours, 2, b"bytes");
        let (buffer, result) = driver.sent();
        assert_eq!(buffer, b"bytes");
        is(&result, Errno::PIPE);
        driver.nothing();
    }
}

fn bytes_are_received_while_a_send_is_pending(mut driver: Driver) {
    let (ours, mut theirs) = pair();
    driver.receive(&ours, 4);
    driver.send(&ours, 4, &vec![1; TOO_MUCH]);
    for round in 0..10 {
        theirs.write_all(&[round]).expect("sent");
        assert_eq!(driver.received().0.expect("bytes"), [round]);
    }
    let reader = std::thread::spawn(move || {
        theirs.read_exact(&mut vec![0; TOO_MUCH]).expect("all of it");
        theirs
    });
    driver.sent().1.expect("it is sent");
    let mut theirs = reader.join().expect("no panic");
    theirs.write_all(b"more").expect("sent");
    assert_eq!(driver.received().0.expect("bytes"), b"more");
}

fn a_shutdown_ends_pending_operations(mut driver: Driver) {
    let (ours, _theirs) = pair();
    driver.receive(&ours, 6);
    driver.send(&ours, 6, &vec![1; TOO_MUCH]);
    driver.nothing();
    shutdown(&ours, Shutdown::Both).expect("a socket");
    let (mut received, mut sent) = (0, 0);
    for _ in 0..2 {
        match driver.next() {
            Event::Received { bytes: Ok(None), more: false, .. } => received += 1,
            Event::Sent { outgoing, result, .. } => {
                assert_eq!(outgoing.bytes().len(), TOO_MUCH);
                result.expect_err("nobody takes it");
                sent += 1;
            }
            event => panic!("{event:?}"),
        }
    }
    assert_eq!((received, sent), (1, 1));
    driver.nothing();
}

fn a_socket_is_closed_with_its_last_event(mut driver: Driver) {
    let (ours, theirs) = pair();
    driver.receive(&ours, 8);
    driver.send(&ours, 8, b"bytes");
    driver.sent().1.expect("it is sent");
    drop(theirs);
    // Unread bytes may make it an error.
    assert!(!driver.received().1);
    assert_eq!(Socket::strong_count(&ours), 1);
    driver.nothing();
}

fn operations_on_other_files_are_errors(mut driver: Driver) {
    let file = Socket::new(File::open("/dev/null").expect("a device").into());
    driver.receive(&file, 1);
    let (received, more) = driver.received();
    assert!(received.is_err() && !more);
    driver.send(&file, 1, b"bytes");
    assert!(driver.sent().1.is_err());
    driver.reactor.accept(&file, 1).expect("accepts");
    let Event::Accepted { socket: Err(_), more: false, .. } = driver.next() else {
        panic!("an error");
    };
    driver.nothing();
}

fn a_connection_that_always_sends_does_not_starve_others(mut driver: Driver) {
    let (greedy, _reads_later) = pair();
    let (other, mut client) = pair();
    driver.receive(&other, 1);
    driver.send(&greedy, 0, b"x");
    driver.sent().1.expect("it is sent");
    client.write_all(b"y").expect("sent");
    let mut iterations = 0;
    loop {
        iterations += 1;
        driver.send(&greedy, 0, b"x");
        driver.reactor.wait(None, &mut driver.events).expect("a wait");
        let received = |event: &Event| matches!(event, Event::Received { connection: 1, .. });
        if driver.events.iter().any(received) {
            break;
        }
        assert!(iterations < 4, "{:?}", driver.events);
        driver.events.clear();
    }
}

fn several_wake_calls_are_one_event(mut driver: Driver) {
    let waker = driver.reactor.waker();
    for _ in 0..3 {
        let from_another = waker.clone();
        let thread = std::thread::spawn(move || (0..3).for_each(|_| from_another.wake()));
        thread.join().expect("no panic");
        let event = driver.next();
        assert!(matches!(event, Event::Woken), "{event:?}");
        driver.nothing();
    }
}

fn a_wait_ends_at_its_timeout(mut driver: Driver) {
    driver.reactor.wait(Some(Duration::from_millis(1)), &mut driver.events).expect("a wait");
    driver.nothing();
}

/// Returns whether the kernel counts each thread that waits with `io_uring` as waiting for I/O.
fn counts_as_iowait() -> bool {
    let options = RingOptions { operations: 1, completions: 1, counts_as_iowait: false };
    let ring = SocketRing::new(&options, 1, OwnedSends::<Vec<u8>>::default());
    ring.expect("a ring").counts_as_iowait()
}

/// Returns the number of tasks of this machine that wait for I/O.
fn tasks_in_iowait() -> usize {
    let text = std::fs::read_to_string("/proc/stat").expect("statistics");
    let line = text.lines().find_map(|line| line.strip_prefix("procs_blocked "));
    line.expect("a count").trim().parse().expect("a number")
}

#[test]
fn threads_without_work_do_not_seem_to_wait_for_io() {
    /// More than wait for I/O on a busy machine.
    const THREADS: usize = 100;
    if counts_as_iowait() {
        // Before Linux 6.15 they count as waiting, see docs/operations.md.
        return;
    }
    let (ready, is_ready) = std::sync::mpsc::channel();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let ready = ready.clone();
            std::thread::spawn(move || {
                let mut reactor = Reactor::new(Backend::Uring, 2).expect("a reactor");
                // The thread number identifies the thread in /proc.
                let thread = rustix::thread::gettid().as_raw_nonzero();
                ready.send((reactor.waker(), thread)).expect("a test");
                reactor.wait(None, &mut Vec::new()).expect("a wait");
            })
        })
        .collect();
    let waiting: Vec<_> = is_ready.iter().take(THREADS).collect();
    for (_, thread) in &waiting {
        let stat = format!("/proc/self/task/{thread}/stat");
        let is_running = || {
            let text = std::fs::read_to_string(&stat).expect("a thread");
            text.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('R'))
        };
        while is_running() {}
    }
    let blocked = tasks_in_iowait();
    for (waker, _) in &waiting {
        waker.wake();
    }
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert!(blocked < THREADS / 2, "{blocked} tasks wait for I/O");
}
