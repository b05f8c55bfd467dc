//! Segments that cannot be opened without a free descriptor do not count as damaged. The only test
//! of its process, whose limit it sets.

use nuthatch_segments::{Id, Options, Outcome, Part, Record, Segments, VerifyEvent, checksum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;

const NAME: [u8; 16] = [7; 16];

fn put(segments: &Segments) -> Outcome {
    let data = [1; 1000];
    let parts = [Part { end: 1000, checksum: checksum(&data) }];
    let record = Record { name: NAME, first: 0, label: b"", expiry: 0, parts: &parts, data: &data };
    segments.put(&record).expect("a put")
}

#[test]
fn segments_are_kept_if_no_descriptor_is_left_to_open_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Segments::open(folder.path(), &Options::new().limit(4 << 20)).expect("a folder");
    assert_eq!(put(&open()), Outcome::Kept);
    let segments = open();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).expect("a limit");
    let files: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let mut message = String::new();
    let verified = segments.verify_with(|event| {
        if let VerifyEvent::Unreadable { reason, .. } = event {
            message = reason.to_owned();
        }
    });
    assert!(message.contains("open files"), "{message}");
    assert_eq!((verified.good, verified.damaged, verified.torn, verified.unreadable), (0, 0, 0, 1));
    drop(files);
    setrlimit(Resource::Nofile, limit).expect("a limit");
    assert!(segments.find(&Id::new(NAME, 0), b"").is_some(), "it is still there");
    assert_eq!(segments.verify().good, 1);
}
