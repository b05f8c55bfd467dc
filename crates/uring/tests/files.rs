//! Tests of reads of files on a ring.

use nuthatch_uring::{Completion, OwnedSends, ReadBuffer, RingOptions, SocketRing};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const OPTIONS: RingOptions =
    RingOptions { operations: 8, completions: 64, counts_as_iowait: false };

type Ring = SocketRing<OwnedSends<Vec<u8>>>;

fn ring() -> Ring {
    SocketRing::new(&OPTIONS, 1, OwnedSends::default()).expect("a ring")
}

/// Returns a file of 20 blocks, whose bytes are the number of their block.
fn file() -> File {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(format!("nuthatch-uring-{}-{}", name.0, name.1));
    let bytes: Vec<u8> = (0..20).flat_map(|block| [block; 4096]).collect();
    fs::write(&path, bytes).expect("a file");
    let file = File::open(&path).expect("a file");
    fs::remove_file(&path).expect("removed");
    file
}

/// Waits for `count` completions, and returns those of reads: number, length and first byte.
fn ends(ring: &mut Ring, count: usize) -> Vec<(u32, u32, u8)> {
    let mut ends = Vec::new();
    while ends.len() < count {
        ring.wait(Some(Duration::from_secs(1))).expect("a wait");
        ring.take_completions(|completion| match completion {
            Completion::Read { number, buffer, len } => {
                ends.push((number, len.expect("read"), buffer.bytes()[0]));
            }
            other => panic!("{other:?}"),
        });
    }
    ends.sort_unstable();
    ends
}

#[test]
fn reads_fill_their_buffers() {
    let (mut ring, file) = (ring(), file());
    // More than the submission queue has room for.
    for number in 0..20 {
        let buffer = ReadBuffer::new(8192);
        assert_eq!(buffer.bytes().as_ptr().align_offset(4096), 0);
        ring.read((file.as_fd(), u64::from(number) * 4096), number, buffer, 4096).expect("begun");
    }
    let expected: Vec<_> = (0..20).map(|number| (number, 4096, number as u8)).collect();
    assert_eq!(ends(&mut ring, 20), expected);
    // Numbers can be used again, and the file ends before the third read does.
    ring.read((file.as_fd(), 4096), 3, ReadBuffer::new(8192), 8192).expect("begun");
    ring.read((file.as_fd(), 19 * 4096), 4, ReadBuffer::new(8192), 8192).expect("begun");
    assert_eq!(ends(&mut ring, 2), [(3, 8192, 1), (4, 4096, 19)]);
}

#[test]
fn a_read_that_cannot_begin_is_refused() {
    let (mut ring, file) = (ring(), file());
    ring.read((file.as_fd(), 0), 0, ReadBuffer::new(4096), 4096).expect("begun");
    let second = ring.read((file.as_fd(), 0), 0, ReadBuffer::new(4096), 4096);
    assert_eq!(second.map_err(|error| error.kind()), Err(ErrorKind::InvalidInput));
    let short = ring.read((file.as_fd(), 0), 1, ReadBuffer::new(4096), 4097);
    assert_eq!(short.map_err(|error| error.kind()), Err(ErrorKind::InvalidInput));
    assert_eq!(ends(&mut ring, 1), [(0, 4096, 0)]);
}

/// The kernel may still write to the buffers.
#[test]
fn a_ring_can_be_dropped_during_reads() {
    let file = file();
    for _ in 0..100 {
        let mut ring = ring();
        for number in 0..8 {
            let buffer = ReadBuffer::new(64 << 10);
            ring.read((file.as_fd(), 0), number, buffer, 64 << 10).expect("begun");
        }
        ring.submit().expect("submitted");
    }
}
