//! A folder in which jobs run.

use nuthatch_snapshot::{OwnedValue, Snapshot};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder in which jobs run.
pub(crate) struct Place(TempDir);

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, contents).expect("a file");
        path
    }

    /// Executes statements in a database of SQLite.
    pub(crate) fn sqlite(&self, statements: &str) {
        let connection = rusqlite::Connection::open(self.path().join("a.db")).expect("a database");
        connection.execute_batch(statements).expect(statements);
    }

    /// Returns the command with these arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nuthatch-populate"));
        command.args(arguments).current_dir(self.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).output().expect("the command"))
    }

    /// Writes a job, and runs it.
    pub(crate) fn job(&self, job: &str) -> Run {
        self.file("job.toml", job);
        self.run(&["job.toml", "--json"])
    }

    /// Returns the entries of a snapshot as `key=value`, in the order of their keys.
    pub(crate) fn entries(&self, name: &str) -> Vec<String> {
        let snapshot = Snapshot::open(self.path().join(name)).expect("a snapshot");
        let entry = |entry: nuthatch_snapshot::Entry<'_>| {
            let value = entry.value.value().expect("a value").into_owned();
            format!("{}={}", String::from_utf8_lossy(entry.key), shown(&value))
        };
        let mut entries: Vec<_> =
            snapshot.iter().map(|found| entry(found.expect("an entry"))).collect();
        entries.sort();
        entries
    }

    /// Returns the names of all files, also of those whose names begin with a dot.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("a folder");
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort();
        names
    }
}

/// Returns a value in Rust's syntax, with its type.
fn shown(value: &OwnedValue) -> String {
    format!("{:?}", value.as_value())
}

impl Run {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Self { status: output.status.code(), stdout, stderr }
    }

    /// Returns the report.
    #[track_caller]
    pub(crate) fn report(&self) -> serde_json::Value {
        assert_eq!(self.status, Some(0), "{self:?}");
        serde_json::from_str(&self.stdout).expect("a report")
    }

    /// Checks that the command failed with this status, and that its message has a text.
    #[track_caller]
    pub(crate) fn failed(&self, status: i32, text: &str) {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert!(self.stderr.contains(text), "expected {text:?}, found {}", self.stderr);
    }
}
