//! Tests of a process that opens a store while another one compacts it.

use crate::file_names::DATA;
use crate::file_names::LOCKS;
use crate::store::backup::compact_by;
use crate::{Options, Store};
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_mins(1);
/// The environment variable with the path of the store, for the other process.
const STORE: &str = "NUTHATCH_TEST_COMPACTED_STORE";

/// Acts as the other process: opens the store, waits for a line of input, and prints the value of
/// a key. Does nothing without a store in the environment.
#[test]
fn reads_what_it_opens() {
    let Ok(path) = std::env::var(STORE) else { return };
    let store = Store::open(path, &Options::new().read_only(true)).expect("a store");
    let table = store.find_table("t").expect("no error").expect("the table");
    println!("> open");
    io::stdin().lock().read_line(&mut String::new()).expect("a line");
    let found = store.get(&table, b"later").expect("a lookup");
    println!("> {}", String::from_utf8_lossy(&found.unwrap_or_default()));
}

/// The other process, and its output.
struct Opener {
    child: Child,
    said: Receiver<String>,
}

impl Opener {
    fn start(store: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["store::compact_tests::reads_what_it_opens", "--exact", "--nocapture"]);
        command.env(STORE, store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("another process");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let (sender, said) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The test program prints lines of its own.
                if let Some((_, said)) = line.split_once("> ") {
                    // A test that failed no longer receives.
                    let _ = sender.send(said.to_owned());
                }
            }
        });
        Self { child, said }
    }

    fn hear(&self) -> String {
        self.said.recv_timeout(LONG).expect("it says something")
    }
}

/// Returns whether a process waits for a lock on a file.
fn is_awaited(lock_file: &Path) -> bool {
    let inode = format!(":{}", fs::metadata(lock_file).expect("the file of locks").ino());
    let locks = fs::read_to_string("/proc/locks").expect("the locks of the system");
    let mut waiters = locks.lines().filter(|line| line.contains("->"));
    waiters.any(|line| line.split_whitespace().any(|word| word.ends_with(&inode)))
}

thread_local! {
    static BEFORE_RENAME: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Syncs a file of a compaction. The hook runs before the new file is synced and renamed.
fn sync(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_dir()
        && let Some(hook) = BEFORE_RENAME.take()
    {
        hook();
    }
    file.sync_all()
}

// With the lock released before the rename, the reader kept the old file.
#[test]
fn a_process_that_opens_a_store_during_a_compaction_sees_the_new_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("its path");
    let store = Store::open(&path, &Options::new()).expect("a store");
    let table = store.table("t").expect("a table");
    store.put(&table, b"first", b"value").expect("a put");
    assert!(store.close_within(LONG));
    let (sender, started) = channel();
    let (locks, folder_to_open) = (path.join(LOCKS), path.clone());
    BEFORE_RENAME.set(Some(Box::new(move || {
        let opener = Opener::start(&folder_to_open);
        let deadline = Instant::now() + LONG;
        while !is_awaited(&locks) {
            assert!(opener.said.try_recv().is_err(), "it opened the file that is replaced");
            assert!(Instant::now() < deadline, "it does not open the store");
            thread::yield_now();
        }
        sender.send(opener).expect("the test waits");
    })));
    let before = fs::metadata(path.join(DATA)).expect("the file").ino();
    compact_by(&path, &Options::new(), sync).expect("a smaller file");
    assert_ne!(fs::metadata(path.join(DATA)).expect("the file").ino(), before);

    let mut opener = started.recv().expect("an opener");
    assert_eq!(opener.hear(), "open");
    let store = Store::open(&path, &Options::new()).expect("a store");
    let table = store.table("t").expect("a table");
    store.put(&table, b"later", b"committed").expect("a put");
    opener.child.stdin.take().expect("its input").write_all(b"\n").expect("it reads");
    assert_eq!(opener.hear(), "committed");
    assert!(opener.child.wait().expect("its end").success());
}
