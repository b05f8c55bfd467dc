//! Tests of killed builds: the complete old or new file remains, and the next build removes the
//! temporary files.

use nuthatch_snapshot::{Snapshot, Value, WriterOptions};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The environment variable with the path at which the child builds repeatedly.
const CHILD: &str = "NUTHATCH_TEST_BUILD_OVER";

/// The environment variable with the number of shards that the child builds; 0 for one file.
const SHARDS: &str = "NUTHATCH_TEST_SHARDS";

/// Number of rows that exceed the memory budget of a small build.
const ROWS: i64 = 30_000;

/// Builds a generation, whose values are its number. Prints a line for each step.
fn build(path: &Path, generation: i64, shards: u32) -> nuthatch_snapshot::Result<()> {
    let options = WriterOptions::new().memory(16 << 20).threads(2).shards(shards);
    let mut writer = options.progress(|progress| println!("{progress:?}")).create(path)?;
    let mut values = [0; 40];
    for row in 0..ROWS {
        values.fill(generation * 1_000_000 + row);
        writer.insert(format!("key {row}").as_bytes(), Value::I64List(&values))?;
    }
    writer.finish()?;
    Ok(())
}

/// Checks that the file is one complete generation. Returns its number.
fn generation(path: &Path) -> AnyResult<i64> {
    let snapshot = Snapshot::open(path)?;
    snapshot.verify()?;
    let first = snapshot.get_i64_list(b"key 0")?.ok_or("the first key")?[0] / 1_000_000;
    for row in 0..ROWS {
        let values = snapshot.get_i64_list(format!("key {row}").as_bytes())?.ok_or("a key")?;
        assert_eq!(*values, [first * 1_000_000 + row; 40], "row {row}");
    }
    Ok(first)
}

/// The child process of the test below, which kills it. Does nothing otherwise.
#[test]
fn child() -> AnyResult {
    let Some(path) = std::env::var_os(CHILD) else { return Ok(()) };
    let shards = std::env::var(SHARDS)?.parse()?;
    let mut next = generation(Path::new(&path))? + 1;
    loop {
        build(Path::new(&path), next, shards)?;
        next += 1;
    }
}

fn spawn(path: &Path, shards: u32) -> AnyResult<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, path)
        .env(SHARDS, shards.to_string());
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?)
}

#[test]
fn a_killed_build_leaves_the_old_file_or_the_new() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("over.nut");
    build(&path, 0, 0)?;
    let mut last = 0;
    let mut left = 0;
    // These numbers are distributed over the steps of two builds of about 4,400 steps each.
    for steps in (0..30).map(|kill| kill * 7919 % 9000) {
        let mut child = spawn(&path, 0)?;
        // Held open until the child is killed; otherwise its writes would fail.
        let mut output = BufReader::new(child.stdout.take().ok_or("its output")?).lines();
        let seen = output.by_ref().take(steps).flatten().count();
        child.kill()?;
        child.wait()?;
        assert_eq!(seen, steps, "the child ended by itself");
        let found = generation(&path)?;
        assert!((last..last + 4).contains(&found), "generation {found} after {last}");
        last = found;
        left += files(directory.path())? - 1;
    }
    assert!(left > 0, "no build was killed");
    assert!(files(directory.path())? < 3, "a build removes what earlier ones left");
    build(&path, last + 1, 0)?;
    assert_eq!(generation(&path)?, last + 1);
    assert_eq!(files(directory.path())?, 1, "only the file is left");
    Ok(())
}

#[test]
fn a_killed_build_of_a_set_leaves_the_old_set_or_the_new() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("over.nut");
    build(&path, 0, 3)?;
    let complete = files(directory.path())?;
    let lock = directory.path().join(".nuthatch-shards.lock");
    let (mut last, mut locks) = (0, 0);
    // These numbers are distributed over the steps of two builds of about 16 steps each.
    for steps in (0..20).map(|kill| kill * 7 % 33) {
        let mut child = spawn(&path, 3)?;
        let mut output = BufReader::new(child.stdout.take().ok_or("its output")?).lines();
        let seen = output.by_ref().take(steps).flatten().count();
        child.kill()?;
        child.wait()?;
        assert_eq!(seen, steps, "the child ended by itself");
        let found = generation(&path)?;
        assert!((last..last + 4).contains(&found), "generation {found} after {last}");
        last = found;
        locks += usize::from(lock.exists());
    }
    assert!(locks > 0, "no build was killed while it had the lock");
    build(&path, last + 1, 3)?;
    assert_eq!(generation(&path)?, last + 1);
    let kept = files(directory.path())?;
    let shards = complete - 1;
    // A build that was killed between its shards and its manifest leaves the shards.
    assert!(kept >= complete && (kept - complete) <= 20 * shards, "{kept} files");
    let shard = |name: &str| Path::new(name).extension().is_some_and(|found| found == "shard");
    let names = std::fs::read_dir(directory.path())?.map(|entry| Ok(entry?.file_name()));
    let names: AnyResult<Vec<_>> = names.collect();
    let mut names: Vec<_> = names?.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| !shard(name));
    assert_eq!(names, ["over.nut"], "no temporary file and no lock file is left");
    Ok(())
}

fn files(directory: &Path) -> AnyResult<usize> {
    Ok(std::fs::read_dir(directory)?.count())
}
