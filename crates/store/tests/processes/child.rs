//! A second process: the same test program, with a role in its environment.

use nuthatch_store::{
    Batch, BatchOptions, Durability, Kind, ManualClock, Options, Range, Read, Store,
};
use std::io::{BufRead, BufReader, Lines, Write, stdin, stdout};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

const ROLE: &str = "NUTHATCH_TEST_ROLE";
const STORE: &str = "NUTHATCH_TEST_STORE";

/// A process with a role.
pub(crate) struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    input: Option<ChildStdin>,
}

impl Other {
    pub(crate) fn start(role: &str, store: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        Self::run(Command::new(program), role, store)
    }

    /// As `start`, with a limit on the file size, in blocks of 512 bytes.
    pub(crate) fn start_with_short_files(role: &str, store: &Path, blocks: u32) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new("sh");
        // Ignores signal 25 (SIGXFSZ), so that a write beyond the limit fails instead.
        command.arg("-c").arg(format!("trap '' 25; ulimit -f {blocks}; exec \"$0\" \"$@\""));
        command.arg(program);
        Self::run(command, role, store)
    }

    /// As `start`, in a new mount namespace if this process may create one. The role detects
    /// whether it has one.
    pub(crate) fn start_with_own_mounts(role: &str, store: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new("sh");
        let script = "for flags in --mount '--mount --user --map-root-user'; do \
            unshare $flags true 2>/dev/null && exec unshare $flags \"$0\" \"$@\"; done; \
            exec \"$0\" \"$@\"";
        command.arg("-c").arg(script).arg(program);
        Self::run(command, role, store)
    }

    fn run(mut command: Command, role: &str, store: &Path) -> Self {
        command.args(["child::plays_its_role", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env(STORE, store);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("another process");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let input = child.stdin.take();
        Self { child, lines, input }
    }

    /// Returns the next line of its output; `None` when it has ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        // The test program prints lines of its own.
        lines.find_map(|line| line.split_once("> ").map(|(_, said)| said.to_owned()))
    }

    /// Returns the next number of its output.
    pub(crate) fn hear_number(&mut self) -> Option<u64> {
        self.hear().map(|said| said.parse().expect("a number"))
    }

    /// Makes it continue.
    pub(crate) fn nudge(&mut self) {
        let input = self.input.as_mut().expect("its input");
        writeln!(input).and_then(|()| input.flush()).expect("it listens");
    }

    /// Kills it with SIGKILL. Returns its output until then.
    pub(crate) fn kill(mut self) -> Vec<u64> {
        self.child.kill().expect("a signal");
        self.child.wait().expect("its end");
        let mut said = Vec::new();
        // The last line may be incomplete.
        while let Some(line) = self.hear() {
            said.extend(line.parse::<u64>());
        }
        said
    }

    pub(crate) fn wait(mut self) {
        drop(self.input.take());
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
    }
}

pub(crate) fn say(what: impl std::fmt::Display) {
    let mut out = stdout().lock();
    // The parent may have ended.
    let _ = writeln!(out, "> {what}").and_then(|()| out.flush());
}

pub(crate) fn pause() {
    let mut line = String::new();
    stdin().lock().read_line(&mut line).expect("a line or the end");
}

/// Runs the role in the environment. Does nothing without one: other tests start it with a role.
#[test]
fn plays_its_role() {
    let (Ok(role), Ok(path)) = (std::env::var(ROLE), std::env::var(STORE)) else { return };
    let path = Path::new(&path);
    match role.as_str() {
        "write sync" => write_pairs(path, Durability::Sync),
        "write group" => write_pairs(path, Durability::Group),
        "write none" => write_pairs(path, Durability::None),
        "write batches" => write_batches(path),
        "count" => count(path),
        "lengthen" => lengthen(path),
        "fill small map" => fill_small_map(path),
        "fill disk" => fill_disk(path),
        "fill a file system" => crate::room::fill_file_system(path),
        "rewrite blocks" => crate::foreign::rewrite_blocks(path, pause, say),
        "write an expired row" => write_expired_row(path),
        "hold a reader" => hold(path, false),
        "hold the writer" => hold(path, true),
        "use many paths" => crate::paths::use_many_paths(path),
        "mount the folder again" => crate::paths::mount_again(path),
        "read from a read-only mount" => crate::paths::read_from_read_only_mount(path),
        "fork" => crate::forks::fork_while_reading(path),
        "fork and close" => crate::forks::fork_and_close(path),
        "fork beside threads" => crate::forks::fork_beside_threads(path),
        role => panic!("no role {role}"),
    }
}

/// Writes the same number to two tables in each transaction, and prints it after the commit.
fn write_pairs(path: &Path, durability: Durability) {
    let store = Store::open(path, &Options::new().durability(durability)).expect("a store");
    let one = store.table("one").expect("a table");
    let two = store.table_of("two", Kind::Stamped).expect("a table");
    store.keep_changes(1000, 1 << 20).expect("changes are kept");
    let begin = store.read().expect("a transaction").count(&one, &Range::all()).expect("a count");
    for n in begin.. {
        let key = n.to_le_bytes();
        let value = vec![n as u8; (n % 97 * 61) as usize];
        let write = store.update(|txn| {
            txn.put(&one, &key, &value)?;
            txn.put(&two, &key, &value)?;
            if n % 3 == 0 {
                txn.put(&one, b"last", &key)?;
                txn.delete(&one, b"last")?;
            }
            Ok(())
        });
        write.expect("a write");
        say(n);
    }
}

/// Submits batches from several threads, and prints the number of each acknowledged batch.
fn write_batches(path: &Path) {
    let store = Store::open(path, &Options::new()).expect("a store");
    let one = store.table("one").expect("a table");
    let two = store.table_of("two", Kind::Stamped).expect("a table");
    let writer = store.batch_writer(&BatchOptions::new()).expect("a writer");
    let begin = store.read().expect("a transaction").count(&one, &Range::all()).expect("a count");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (writer, one, two) = (&writer, &one, &two);
            scope.spawn(move || {
                for n in (begin * 4 + thread..).step_by(4) {
                    let (key, value) = (n.to_le_bytes(), vec![n as u8; 300]);
                    let batch = Batch::new().put(one, key, value.clone()).put(two, key, value);
                    writer.submit(batch).expect("room").wait().expect("an acknowledgement");
                    say(n);
                }
            });
        }
    });
}

/// Adds one to a counter a thousand times.
fn count(path: &Path) {
    let store = Store::open(path, &Options::new().durability(Durability::None)).expect("a store");
    let table = store.table("counters").expect("a table");
    say("ready");
    pause();
    for _ in 0..1000 {
        let add = store.update(|txn| crate::together::add_one(txn, &table));
        add.expect("a write");
    }
    say("done");
}

/// Commits values that each need new pages at the end of the file.
fn lengthen(path: &Path) {
    let store = Store::open(path, &Options::new().durability(Durability::None)).expect("a store");
    let table = store.table("rows").expect("a table");
    say("ready");
    pause();
    for n in 0..60_000_u32 {
        store.put(&table, &n.to_le_bytes(), &[7; 2100]).expect("a put");
    }
    say("done");
}

fn fill_small_map(path: &Path) {
    let store = Store::open(path, &Options::new().reserve(1 << 20)).expect("a store");
    let table = store.table("rows").expect("a table");
    say("ready");
    pause();
    for n in 0..64_u8 {
        store.put(&table, &[n + 1], &vec![n; 1 << 19]).expect("the map grows");
    }
    say("done");
    pause();
}

/// Writes until the file size limit of this process is reached, and checks what works after that.
fn fill_disk(path: &Path) {
    let store = Store::open(path, &Options::new()).expect("a store");
    let table = store.table("rows").expect("a table");
    let mut rows = 0_u32;
    let error = loop {
        match store.put(&table, &rows.to_le_bytes(), &[7; 10_000]) {
            Ok(()) => rows += 1,
            Err(error) => break error,
        }
        assert!(rows < 100_000, "no end");
    };
    assert_eq!(error.code(), "io", "{error}");
    let (path, text) = (path.join("data.mdb"), error.to_string());
    assert_eq!(text, format!("{}: commit: File too large (os error 27)", path.display()));
    let txn = store.read().expect("reading goes on");
    assert_eq!(txn.count(&table, &Range::all()).expect("a count"), u64::from(rows));
    drop(txn);
    // The pages of deleted rows are reused for new rows.
    for n in 0..rows / 2 {
        store.delete(&table, &n.to_le_bytes()).expect("room to delete");
    }
    store.put(&table, b"again", &[7; 10_000]).expect("room again");
    store.verify(|_, _| ()).expect("no damage");
    say(rows);
}

/// Writes a row to a table of its own that has expired by the clock of other processes.
fn write_expired_row(path: &Path) {
    let clock = Arc::new(ManualClock::new(1000));
    let store = Store::open(path, &Options::new().clock(clock)).expect("a store");
    let table = store.table_of("sessions", Kind::Stamped).expect("a table");
    store.update(|txn| txn.put_until(&table, b"key", b"value", 2000)).expect("a put");
}

fn hold(path: &Path, writing: bool) {
    let store = Store::open(path, &Options::new()).expect("a store");
    let table = store.table("rows").expect("a table");
    if writing {
        let mut txn = store.write().expect("a transaction");
        txn.put(&table, b"never", b"committed").expect("a put");
        say("holding");
        pause();
    } else {
        let _txn = store.read_owned().expect("a transaction");
        say("holding");
        pause();
    }
}
