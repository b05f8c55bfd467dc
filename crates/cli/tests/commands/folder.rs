//! A temporary folder, and runs of the command in it.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A folder that is removed when the test ends.
pub(crate) struct Folder(TempDir);

/// The result of a run of the command.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) stdout_bytes: Vec<u8>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for the test"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the path as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// Creates a file that only its owner can read.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path(name), bytes).expect("a file of the test");
        self.mode(name, 0o600)
    }

    pub(crate) fn mode(&self, name: &str, mode: u32) -> &Self {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(name), permissions).expect("a mode");
        self
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file of the test")
    }

    /// Returns the command in this folder, without the environment variables that it reads.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nuthatch"));
        for (name, _) in std::env::vars_os() {
            let name_bytes = name.as_encoded_bytes();
            if name_bytes.starts_with(b"NUTHATCH_") || name_bytes.starts_with(b"OTEL_") {
                command.env_remove(name);
            }
        }
        command.args(arguments).current_dir(self.0.path());
        command
    }

    /// Runs the command in this folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, b"")
    }

    /// Runs the command with a standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Run {
        Run::of(self.command(arguments), stdin)
    }

    /// Runs the command on a full disk: its standard output cannot be written. Returns its exit
    /// status and its messages.
    pub(crate) fn run_with_full_output(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a full disk");
        let mut command = self.command(arguments);
        let ended = command.stdout(full).stderr(Stdio::piped()).output().expect("the command");
        (ended.status.code(), String::from_utf8(ended.stderr).expect("text"))
    }

    /// Builds a snapshot. Panics if that fails.
    #[track_caller]
    pub(crate) fn build(&self, arguments: &[&str]) -> &Self {
        let run = self.run(&[&["build", "--quiet"], arguments].concat());
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{arguments:?}");
        self
    }

    /// Builds a snapshot, which must fail. Returns the message.
    #[track_caller]
    pub(crate) fn build_fails(&self, status: i32, arguments: &[&str]) -> String {
        let run = self.run(&[&["build"], arguments].concat());
        assert_eq!(run.status, Some(status), "{arguments:?}: {run:?}");
        assert_eq!(run.stdout, "");
        run.stderr
    }

    /// Returns the rows of a snapshot in JSON, sorted.
    #[track_caller]
    pub(crate) fn rows(&self, snapshot: &str) -> Vec<String> {
        let run = self.run(&["dump", snapshot]);
        assert_eq!(run.status, Some(0), "{run:?}");
        let mut rows: Vec<_> = run.stdout.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    }
}

impl Run {
    /// Runs a command to its end with a standard input.
    pub(crate) fn of(mut command: Command, stdin: &[u8]) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command to start");
        // A command that fails early closes its input: the rest is not for it.
        let _ = child.stdin.take().expect("its input").write_all(stdin);
        let output = child.wait_with_output().expect("the command to end");
        Self {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            stdout_bytes: output.stdout,
        }
    }
}

/// Returns a row as `dump` writes it.
pub(crate) fn row(key: &str, value: &str) -> String {
    format!("{{\"key\":\"{key}\",\"value\":{value}}}")
}

/// Returns rows as JSON lines.
pub(crate) fn lines(rows: &[(&str, &str)]) -> String {
    rows.iter().map(|(key, value)| row(key, value) + "\n").collect()
}
