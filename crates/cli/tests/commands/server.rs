//! Cache servers as users start them.

use crate::folder::{Folder, Run};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of a test. Only a server that hangs takes as long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(expected: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "expected within {PATIENCE:?}: {expected}");
        thread::yield_now();
    }
}

/// The default address for tests.
const DEFAULTS: &[&str] =
    &["--memory=16MiB", "--threads=2", "--memcache=off", "--resp=127.0.0.1:0", "--admin=off"];

/// Waits until a server accepts no more connections at this address.
#[track_caller]
pub(crate) fn wait_until_closed(address: &str) {
    wait_until("a closed port", || TcpStream::connect(address).is_err());
}

/// Returns the default arguments of a server in tests, followed by these.
fn with_defaults<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let is_given = |flag: &str| arguments.iter().any(|argument| argument.starts_with(flag));
    let mut all = DEFAULTS.to_vec();
    all.retain(|default| !default.split('=').next().is_some_and(is_given));
    all.extend(arguments);
    all
}

impl Folder {
    /// Returns `nuthatch serve` with only these arguments and environment variables.
    pub(crate) fn serve_command(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = self.command(&[&["serve"], arguments].concat());
        command.envs(variables.iter().copied());
        command
    }

    /// Runs `nuthatch serve` to its end.
    pub(crate) fn run_serve(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
        Run::of(self.serve_command(arguments, variables), b"")
    }

    /// Runs `nuthatch serve`, which must fail. Returns the message.
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
        let run = self.run_serve(arguments, variables);
        assert_eq!(run.stderr, format!("nuthatch: {message}\n"), "{arguments:?}");
        assert_eq!((run.status, &run.stdout[..]), (Some(status), ""), "{arguments:?}");
    }

    /// Starts a server, at a free port unless the arguments have an address.
    #[track_caller]
    pub(crate) fn serve(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        self.start(self.serve_command(&with_defaults(arguments), variables))
    }

    /// As [`serve`](Self::serve), without a flag for the memory.
    #[track_caller]
    pub(crate) fn serve_without_memory(&self, arguments: &[&str]) -> Running {
        self.start(self.serve_command(&[&DEFAULTS[1..], arguments].concat(), &[]))
    }

    /// As [`serve`](Self::serve), with a limit of open files.
    #[track_caller]
    pub(crate) fn serve_with_files(&self, files: &str, arguments: &[&str]) -> Running {
        let serves = self.serve_command(&with_defaults(arguments), &[]);
        self.start(self.with_files(files, &serves))
    }

    /// Returns a command of this folder, run with these arguments of `ulimit`.
    pub(crate) fn with_files(&self, files: &str, limited: &Command) -> Command {
        let mut command = Command::new("sh");
        // Files that the test process inherited would count, too.
        let inherited = "3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-";
        let limit = format!("exec {inherited}; ulimit {files} && exec \"$0\" \"$@\"");
        command.arg("-c").arg(limit).arg(limited.get_program()).args(limited.get_args());
        command.current_dir(self.path("."));
        for (name, _) in limited.get_envs().filter(|(_, value)| value.is_none()) {
            command.env_remove(name);
        }
        command
    }

    /// Starts a server and waits until it listens.
    #[track_caller]
    pub(crate) fn start(&self, mut command: Command) -> Running {
        let stderr = self.path("stderr");
        command.stderr(std::fs::File::create(&stderr).expect("a file of the test"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the command to start");
        let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
        let (mut addresses, mut admin) = (Vec::new(), String::new());
        let greeting = loop {
            let mut line = String::new();
            stdout.read_line(&mut line).expect("its output");
            let said = || std::fs::read_to_string(&stderr).expect("its messages");
            assert!(!line.is_empty(), "{command:?}: {}", said());
            let metrics = line.strip_prefix("metrics at http://");
            if let Some(address) = metrics.and_then(|rest| rest.trim_end().strip_suffix("/metrics"))
            {
                address.clone_into(&mut admin);
            } else if let Some(address) = line.strip_prefix("listening at ") {
                addresses.extend(address.split_whitespace().next().map(str::to_owned));
            } else if !line.starts_with("metrics at ") {
                break line;
            }
        };
        Running { child, stdout, addresses, admin, greeting, stderr }
    }
}

/// A server that is killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Its addresses.
    pub(crate) addresses: Vec<String>,
    /// The address of its admin endpoint, if that is a TCP address.
    pub(crate) admin: String,
    /// The last line that it prints at its start.
    pub(crate) greeting: String,
    stderr: PathBuf,
}

impl Running {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.addresses[0]).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Sends a command on a new connection. Returns everything that the server sends until it
    /// closes the connection.
    pub(crate) fn ask(&self, commands: &str) -> String {
        let mut stream = self.connect();
        write!(stream, "{commands}\r\nQUIT\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.strip_suffix("+OK\r\n").unwrap_or(&answer).to_owned()
    }

    /// Returns a setting from `CONFIG GET`.
    #[track_caller]
    pub(crate) fn config(&self, name: &str) -> String {
        let answer = self.ask(&format!("CONFIG GET {name}"));
        let mut lines = answer.split("\r\n");
        assert_eq!(lines.next(), Some("*2"), "{name}: {answer}");
        lines.nth(3).expect("a value").to_owned()
    }

    /// Returns its standard error so far.
    pub(crate) fn messages(&self) -> String {
        std::fs::read_to_string(&self.stderr).expect("its messages")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.child);
        kill_process(id, signal).expect("a process");
    }

    /// Waits until the process has ended, even if another one has its output, and returns the exit
    /// status.
    #[track_caller]
    pub(crate) fn wait_until_ended(&mut self) -> Option<i32> {
        wait_until("the end of the server", || self.has_ended());
        self.child.wait().expect("its end").code()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a process").is_some()
    }

    /// Ends the server with SIGTERM. Returns the exit status and the log.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        (self.wait(), self.messages())
    }

    /// Waits for its end and returns the exit status.
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
