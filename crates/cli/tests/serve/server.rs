//! The command in a folder of a test's own, and servers that it starts.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// A folder that goes when the test ends.
pub(crate) struct Folder(TempDir);

/// What a run of the command left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for the test"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// Makes a file that its owner alone may read.
    pub(crate) fn file(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.path(name), text).expect("a file of the test");
        self.mode(name, 0o600)
    }

    pub(crate) fn mode(&self, name: &str, mode: u32) -> &Self {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(name), permissions).expect("a mode");
        self
    }

    /// `nuthatch serve` with these arguments and variables, and no others.
    pub(crate) fn command(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nuthatch"));
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"NUTHATCH_") {
                command.env_remove(name);
            }
        }
        command.arg("serve").args(arguments).envs(variables.iter().copied());
        command.current_dir(self.0.path());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = self.command(arguments, variables);
        let output = command.stdin(Stdio::null()).output().expect("the command to run");
        Run {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A run that must fail, and says this.
    #[track_caller]
    pub(crate) fn fails(&self, arguments: &[&str], status: i32, message: &str) {
        self.fails_with(arguments, &[], status, message);
    }

    #[track_caller]
    pub(crate) fn fails_with(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
        status: i32,
        message: &str,
    ) {
        let run = self.run(arguments, variables);
        assert_eq!(run.stderr, format!("nuthatch: {message}\n"), "{arguments:?}");
        assert_eq!((run.status, &run.stdout[..]), (Some(status), ""), "{arguments:?}");
    }

    /// A server that listens; at any free port, unless there is an address among the arguments.
    #[track_caller]
    pub(crate) fn serve(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        let mut all = vec!["--memory=16MiB", "--threads=2", "--memcache=off"];
        if !arguments.iter().any(|argument| argument.starts_with("--resp")) {
            all.push("--resp=127.0.0.1:0");
        }
        if !arguments.iter().any(|argument| argument.starts_with("--admin")) {
            all.push("--admin=off");
        }
        let mut command = self.command(&[&all[..], arguments].concat(), variables);
        let stderr = self.path("stderr");
        command.stderr(std::fs::File::create(&stderr).expect("a file of the test"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the command to start");
        let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut addresses = Vec::new();
        loop {
            let mut line = String::new();
            stdout.read_line(&mut line).expect("its output");
            let said = || std::fs::read_to_string(&stderr).expect("its messages");
            assert!(!line.is_empty(), "{arguments:?}: {}", said());
            match line.strip_prefix("listening at ") {
                Some(address) => addresses.extend(address.split(' ').next().map(str::to_owned)),
                None => return Running { child, stdout, addresses, greeting: line, stderr },
            }
        }
    }
}

/// A server that runs until this is dropped.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Where it listens.
    pub(crate) addresses: Vec<String>,
    /// What it says last as it starts.
    pub(crate) greeting: String,
    stderr: PathBuf,
}

impl Running {
    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.addresses[0]).expect("a connection")
    }

    /// What is answered to a command, to a client of its own, until the server closes.
    pub(crate) fn ask(&self, commands: &str) -> String {
        let mut stream = self.connect();
        write!(stream, "{commands}\r\nQUIT\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.strip_suffix("+OK\r\n").unwrap_or(&answer).to_owned()
    }

    /// A setting, as `CONFIG GET` tells it.
    #[track_caller]
    pub(crate) fn config(&self, name: &str) -> String {
        let answer = self.ask(&format!("CONFIG GET {name}"));
        let mut lines = answer.split("\r\n");
        assert_eq!(lines.next(), Some("*2"), "{name}: {answer}");
        lines.nth(3).expect("a value").to_owned()
    }

    /// What it said on its standard error until now.
    pub(crate) fn messages(&self) -> String {
        std::fs::read_to_string(&self.stderr).expect("its messages")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.child);
        kill_process(id, signal).expect("a process");
    }

    /// Waits for its end, and answers the exit status.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("its output");
        assert_eq!(rest, "");
        self.child.wait().expect("its end").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
