//! Tests the rings of sockets, with both ends of each connection in this process.

use nuthatch_uring::{
    BUFFER_LEN, BufferPool, Completion, Filled, Outbox, OwnedSends, RingOptions, SendMemory,
    SocketRing, StableBytes, Waker,
};
use rustix::io::Errno;
use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BUFFERS: u16 = 4;

const OPTIONS: RingOptions =
    RingOptions { operations: 16, completions: 64, counts_as_iowait: false };

/// More bytes than a socket accepts without being read.
const TOO_MUCH: usize = 32 << 20;

/// The time after which a test that waits for a completion fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// A ring, and its completions that were not examined yet.
struct Driver<S: SendMemory> {
    ring: SocketRing<S>,
    completions: Vec<Completion<S::Sent>>,
}

fn ring<B: StableBytes>() -> Driver<OwnedSends<B>> {
    ring_with(&OPTIONS, OwnedSends::default())
}

fn ring_with<S: SendMemory>(options: &RingOptions, sends: S) -> Driver<S> {
    let ring = SocketRing::new(options, BUFFERS, sends).expect("a ring");
    Driver { ring, completions: Vec::new() }
}

impl<S: SendMemory<Sent: Debug>> Driver<S> {
    fn wait(&mut self, timeout: Duration) {
        self.ring.wait(Some(timeout)).expect("a wait");
        self.ring.take_completions(|completion| self.completions.push(completion));
    }

    /// Returns the next completion.
    #[track_caller]
    fn next(&mut self) -> Completion<S::Sent> {
        let start = Instant::now();
        while self.completions.is_empty() {
            assert!(start.elapsed() < PATIENCE, "no completion");
            self.wait(Duration::from_secs(1));
        }
        self.completions.remove(0)
    }

    /// Checks that there is no completion.
    #[track_caller]
    fn nothing(&mut self) {
        (0..3).for_each(|_| self.wait(Duration::ZERO));
        assert!(self.completions.is_empty(), "{:?}", self.completions);
    }

    /// Returns the result of the next receive operation of this connection, and whether the
    /// operation continues.
    #[track_caller]
    fn received(&mut self, expected: u32) -> (io::Result<Option<Filled>>, bool) {
        match self.next() {
            Completion::Received { connection, bytes, more } if connection == expected => {
                (bytes, more)
            }
            completion => panic!("{completion:?}"),
        }
    }

    /// Returns the filled buffer that this connection receives next.
    #[track_caller]
    fn filled(&mut self, connection: u32) -> Filled {
        let (bytes, more) = self.received(connection);
        assert!(more, "{bytes:?}");
        bytes.expect("bytes").expect("not the end")
    }

    fn take(&mut self, filled: Filled) -> Vec<u8> {
        let bytes = self.ring.bytes(&filled).to_vec();
        assert_eq!(bytes.len(), filled.len());
        self.ring.give_back(filled);
        bytes
    }

    /// Returns the value and the result of the next send of this connection.
    #[track_caller]
    fn sent(&mut self, expected: u32) -> (S::Sent, io::Result<u32>) {
        match self.next() {
            Completion::Sent { connection, value, len } if connection == expected => (value, len),
            completion => panic!("{completion:?}"),
        }
    }
}

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("sockets")
}

/// Checks that a result is this error.
#[track_caller]
fn is<T: Debug>(result: &io::Result<T>, errno: Errno) {
    let error = result.as_ref().expect_err("an error");
    assert_eq!(error.raw_os_error(), Some(errno.raw_os_error()), "{error}");
}

fn read_exactly(mut socket: &UnixStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    socket.read_exact(&mut bytes).expect("all of it");
    bytes
}

#[test]
fn received_bytes_are_sent_back_until_the_end() {
    let mut driver = ring::<Vec<u8>>();
    let (ours, mut theirs) = pair();
    driver.ring.receive(ours.as_fd(), 7).expect("receives");
    // Each buffer is used several times.
    for round in 0..5 * BUFFERS as u8 {
        theirs.write_all(&[round; 100]).expect("sent");
        let filled = driver.filled(7);
        let bytes = driver.take(filled);
        driver.ring.send(ours.as_fd(), 7, bytes).expect("sends");
        let (value, len) = driver.sent(7);
        assert_eq!((value, len.expect("sent")), (vec![round; 100], 100));
        assert_eq!(read_exactly(&theirs, 100), [round; 100]);
    }
    drop(theirs);
    let (bytes, more) = driver.received(7);
    assert!(bytes.expect("the end").is_none() && !more);
    driver.nothing();
}

#[test]
fn receiving_stops_while_all_buffers_are_in_use() {
    let mut driver = ring::<Vec<u8>>();
    let (ours, mut theirs) = pair();
    driver.ring.receive(ours.as_fd(), 0).expect("receives");
    let mut held = Vec::new();
    for number in 0..BUFFERS as u8 {
        theirs.write_all(&[number]).expect("sent");
        held.push(driver.filled(0));
    }
    theirs.write_all(&[99]).expect("sent");
    let (bytes, more) = driver.received(0);
    is(&bytes, Errno::NOBUFS);
    assert!(!more);
    driver.nothing();
    for (number, filled) in held.into_iter().enumerate() {
        assert_eq!(driver.take(filled), [number as u8], "the kernel has written to it");
    }
    driver.ring.receive(ours.as_fd(), 0).expect("receives");
    let filled = driver.filled(0);
    assert_eq!(driver.take(filled), [99]);
}

#[test]
fn a_buffer_has_no_more_than_its_length() {
    let mut driver = ring::<Vec<u8>>();
    let (ours, mut theirs) = pair();
    theirs.write_all(&vec![1; 2 * BUFFER_LEN]).expect("sent");
    driver.ring.receive(ours.as_fd(), 0).expect("receives");
    for _ in 0..2 {
        let filled = driver.filled(0);
        assert_eq!(driver.take(filled), [1; BUFFER_LEN]);
    }
}

#[test]
fn more_operations_than_the_submission_queue_holds_are_performed() {
    const CONNECTIONS: u32 = 50;
    let options = RingOptions { operations: 2, completions: 256, ..OPTIONS };
    let mut driver = ring_with(&options, OwnedSends::default());
    let pairs: Vec<_> = (0..CONNECTIONS).map(|_| pair()).collect();
    for (number, (ours, _)) in (0..).zip(&pairs) {
        driver.ring.receive(ours.as_fd(), number).expect("receives");
        driver.ring.send(ours.as_fd(), number, vec![number as u8]).expect("sends");
    }
    let mut sent: Vec<u32> = Vec::new();
    for _ in &pairs {
        match driver.next() {
            Completion::Sent { connection, value, len: Ok(1) } => {
                assert_eq!(value, [connection as u8]);
                sent.push(connection);
            }
            completion => panic!("{completion:?}"),
        }
    }
    sent.sort_unstable();
    assert!(sent.into_iter().eq(0..CONNECTIONS));
    for (number, (_, theirs)) in (0..).zip(&pairs) {
        let mut theirs = theirs;
        assert_eq!(read_exactly(theirs, 1), [number as u8]);
        theirs.write_all(b"+").expect("sent");
        let filled = driver.filled(number);
        assert_eq!(driver.take(filled), b"+");
    }
    driver.nothing();
}

#[test]
fn a_wait_ends_at_its_timeout() {
    for counts_as_iowait in [true, false] {
        let options = RingOptions { counts_as_iowait, ..OPTIONS };
        let mut driver = ring_with(&options, OwnedSends::<Vec<u8>>::default());
        assert!(driver.ring.counts_as_iowait() || !counts_as_iowait);
        driver.ring.wait(Some(Duration::from_millis(1))).expect("a wait");
        driver.nothing();
    }
}

#[test]
fn calls_of_a_waker_end_a_wait_and_are_one_completion() {
    for counts_as_iowait in [true, false] {
        let options = RingOptions { counts_as_iowait, ..OPTIONS };
        let mut driver = ring_with(&options, OwnedSends::<Vec<u8>>::default());
        let waker = Waker::new().expect("a waker");
        for _ in 0..3 {
            driver.ring.expect_wake(&waker).expect("expects");
            let from_another = waker.clone();
            let thread = std::thread::spawn(move || (0..3).for_each(|_| from_another.wake()));
            driver.ring.wait(None).expect("a wait");
            thread.join().expect("no panic");
            let completion = driver.next();
            assert!(matches!(completion, Completion::Woken), "{completion:?}");
            waker.clear();
            driver.nothing();
        }
    }
}

#[test]
fn connections_are_accepted_with_the_number_of_their_listener() {
    let mut driver = ring::<Vec<u8>>();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    driver.ring.accept(listener.as_fd(), 3).expect("accepts");
    let address = listener.local_addr().expect("an address");
    let clients: Vec<_> = (0..10).map(|_| TcpStream::connect(address)).collect();
    for _ in &clients {
        let Completion::Accepted { listener: 3, socket: Ok(socket), more: true } = driver.next()
        else {
            panic!("a connection");
        };
        let flags = rustix::io::fcntl_getfd(socket).expect("flags");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    driver.nothing();
}

#[test]
fn a_cancelled_receive_operation_ends() {
    let mut driver = ring::<Vec<u8>>();
    let (ours, mut theirs) = pair();
    driver.ring.receive(ours.as_fd(), 5).expect("receives");
    // Another connection receives further, and one without an operation has none to end.
    let (others, mut client) = pair();
    driver.ring.receive(others.as_fd(), 6).expect("receives");
    driver.ring.cancel_receive(5).expect("cancels");
    driver.ring.cancel_receive(77).expect("cancels");
    let (bytes, more) = driver.received(5);
    is(&bytes, Errno::CANCELED);
    assert!(!more);
    theirs.write_all(b"-").expect("sent");
    driver.nothing();
    client.write_all(b"+").expect("sent");
    let filled = driver.filled(6);
    assert_eq!(driver.take(filled), b"+");
}

#[test]
fn parts_of_an_outbox_are_sent() {
    let outbox: Arc<Vec<u8>> = Arc::new((0..=255).collect());
    let mut driver = ring_with(&OPTIONS, Outbox::new(Arc::clone(&outbox)));
    let (ours, theirs) = pair();
    for part in [0..256, 10..20, 255..256] {
        driver.ring.send_part(ours.as_fd(), 1, part.clone()).expect("sends");
        let ((), len) = driver.sent(1);
        assert_eq!(len.expect("sent") as usize, part.len());
        assert_eq!(read_exactly(&theirs, part.len()), outbox[part]);
    }
}

#[test]
#[should_panic(expected = "out of range")]
fn a_part_beyond_the_outbox_is_refused() {
    let mut driver = ring_with(&OPTIONS, Outbox::new(Arc::new(vec![1; 10])));
    let (ours, _theirs) = pair();
    let _ = driver.ring.send_part(ours.as_fd(), 0, 5..11);
}

#[test]
fn a_second_send_of_a_connection_is_refused() {
    let mut driver = ring::<Arc<[u8]>>();
    let (ours, theirs) = pair();
    let bytes: Arc<[u8]> = (0..TOO_MUCH).map(|at| (at / 4096) as u8).collect();
    driver.ring.send(ours.as_fd(), 2, Arc::clone(&bytes)).expect("sends");
    driver.nothing();
    let second = Arc::from(&b"second"[..]);
    let error = driver.ring.send(ours.as_fd(), 2, second).expect_err("it has one");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let reader = std::thread::spawn(move || (read_exactly(&theirs, TOO_MUCH), theirs));
    let (value, len) = driver.sent(2);
    assert_eq!(len.expect("sent") as usize, TOO_MUCH);
    let (read, _theirs) = reader.join().expect("no panic");
    assert!(read[..] == bytes[..] && value == bytes);
    driver.ring.send(ours.as_fd(), 2, Arc::from(&b"third"[..])).expect("sends");
    assert_eq!(driver.sent(2).1.expect("sent"), 5);
}

#[test]
fn dropping_a_ring_ends_its_operations() {
    let mut driver = ring::<Arc<[u8]>>();
    let (ours, theirs) = pair();
    let bytes: Arc<[u8]> = vec![1; TOO_MUCH].into();
    driver.ring.receive(ours.as_fd(), 0).expect("receives");
    driver.ring.send(ours.as_fd(), 0, Arc::clone(&bytes)).expect("sends");
    driver.nothing();
    assert_eq!(Arc::strong_count(&bytes), 2);
    drop(driver);
    assert_eq!(Arc::strong_count(&bytes), 1);
    drop(ours);
    let mut received = Vec::new();
    (&theirs).read_to_end(&mut received).expect("the end");
    assert!(received.len() < TOO_MUCH);
}

#[test]
fn buffers_lose_their_memory_while_it_is_scarce() {
    const MANY: u16 = 32;
    let sends = OwnedSends::<Vec<u8>>::default();
    let ring = SocketRing::new(&OPTIONS, MANY, sends).expect("a ring");
    let mut driver = Driver { ring, completions: Vec::new() };
    let (ours, mut theirs) = pair();
    driver.ring.receive(ours.as_fd(), 0).expect("receives");
    for (is_scarce, buffers) in [(false, 32), (true, 16), (false, 32)] {
        driver.ring.save_memory(is_scarce);
        for round in 0..MANY as u8 {
            theirs.write_all(&[round]).expect("sent");
            let filled = driver.filled(0);
            assert_eq!(driver.take(filled), [round]);
        }
        assert_eq!(driver.ring.buffers_len(), buffers * BUFFER_LEN);
    }
}

#[test]
fn a_ring_refuses_buffers_of_another() {
    let (mut first, mut second) = (ring::<Vec<u8>>(), ring::<Vec<u8>>());
    let (ours, mut theirs) = pair();
    first.ring.receive(ours.as_fd(), 0).expect("receives");
    theirs.write_all(b"first").expect("sent");
    let filled = first.filled(0);
    assert_eq!(first.ring.bytes(&filled), b"first");
    assert_eq!(second.ring.bytes(&filled), b"");
    second.ring.give_back(filled);
    // The second ring has as many buffers as before.
    let (ours, mut theirs) = pair();
    second.ring.receive(ours.as_fd(), 0).expect("receives");
    let mut held = Vec::new();
    for _ in 0..BUFFERS {
        theirs.write_all(b"+").expect("sent");
        held.push(second.filled(0));
    }
    theirs.write_all(b"+").expect("sent");
    is(&second.received(0).0, Errno::NOBUFS);
}

#[test]
fn the_number_of_buffers_is_a_power_of_two() {
    for buffers in [0, 3, 65_535] {
        let sends = OwnedSends::<Vec<u8>>::default();
        let Err(error) = SocketRing::new(&OPTIONS, buffers, sends) else {
            panic!("{buffers} buffers");
        };
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(&format!("found: {buffers}")), "{error}");
    }
}

#[test]
fn a_pool_fills_its_free_buffers() {
    let mut pool = BufferPool::new(2).expect("buffers");
    let fill = |pool: &mut BufferPool, byte: u8| {
        pool.fill(|room| {
            room[..3].fill(byte);
            Ok::<_, Errno>(3)
        })
    };
    let first = fill(&mut pool, 1).expect("a buffer").expect("filled").expect("bytes");
    // Without bytes and after an error, the buffer stays free.
    assert!(matches!(pool.fill(|_| Ok::<_, Errno>(0)), Some(Ok(None))));
    assert!(matches!(pool.fill(|_| Err(Errno::AGAIN)), Some(Err(Errno::AGAIN))));
    let second = fill(&mut pool, 2).expect("a buffer").expect("filled").expect("bytes");
    assert!(fill(&mut pool, 3).is_none(), "all are in use");
    assert_eq!((pool.bytes(&first), pool.bytes(&second)), (&[1; 3][..], &[2; 3][..]));
    pool.give_back(first);
    let third = fill(&mut pool, 3).expect("a buffer").expect("filled").expect("bytes");
    assert_eq!((pool.bytes(&second), pool.bytes(&third)), (&[2; 3][..], &[3; 3][..]));
    assert_eq!(pool.memory_len(), 2 * BUFFER_LEN);
}
