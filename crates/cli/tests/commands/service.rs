//! What servers report to the service manager that has started them.

use crate::folder::Folder;
use rustix::process::Signal;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;
use std::time::Duration;

/// The socket of a service manager.
struct Manager(UnixDatagram);

impl Manager {
    fn new(folder: &Folder) -> Self {
        let socket = UnixDatagram::bind(folder.path("notify")).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
        Self(socket)
    }

    /// Sets the environment of a process that reports to this socket.
    fn configure(folder: &Folder, command: &mut Command) {
        command.env("NOTIFY_SOCKET", folder.path("notify"));
    }

    fn receive(&self) -> String {
        let mut bytes = [0; 4096];
        let len = self.0.recv(&mut bytes).expect("a report");
        String::from_utf8(bytes[..len].to_vec()).expect("text")
    }

    /// Returns the first report that is not one for the watchdog.
    fn state(&self) -> String {
        loop {
            let report = self.receive();
            if report.trim_end() != "WATCHDOG=1" {
                return report.trim_end().to_owned();
            }
        }
    }
}

fn serve(folder: &Folder) -> Command {
    let arguments = ["serve", "--resp=127.0.0.1:0", "--memcache=off", "--memory=64MiB"];
    let mut command = folder.command(&arguments);
    command.args(["--admin=127.0.0.1:0", "--enable-debug-command=local", "--threads=1"]);
    Manager::configure(folder, &mut command);
    command
}

#[test]
fn a_server_reports_its_states() {
    let folder = Folder::new();
    let manager = Manager::new(&folder);
    let server = folder.start(serve(&folder));
    assert_eq!(manager.state(), "READY=1");
    server.signal(Signal::HUP);
    let reloading = manager.state();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(manager.state(), "READY=1");
    server.signal(Signal::TERM);
    assert_eq!(manager.state(), "STOPPING=1");
}

#[test]
fn a_follower_reports_its_states() {
    let folder = Folder::new();
    let manager = Manager::new(&folder);
    let mut command = folder.command(&["follow", "shared", "there", "--admin=127.0.0.1:0"]);
    Manager::configure(&folder, &mut command);
    let follower = folder.start(command);
    assert_eq!(manager.state(), "READY=1");
    follower.signal(Signal::TERM);
    assert_eq!(manager.state(), "STOPPING=1");
}

#[test]
fn the_watchdog_is_fed_while_all_threads_respond() {
    let folder = Folder::new();
    let manager = Manager::new(&folder);
    let mut command = serve(&folder);
    command.env("WATCHDOG_USEC", "200000");
    let server = folder.start(command);
    assert_eq!(manager.state(), "READY=1");
    for _ in 0..3 {
        assert_eq!(manager.receive().trim_end(), "WATCHDOG=1");
    }
    // The only thread waits in this command for longer than the watchdog allows.
    server.ask("DEBUG SLEEP 1");
    assert_eq!(manager.receive().trim_end(), "WATCHDOG=1", "it responds again");
    let (_, log) = server.stop();
    assert!(log.contains("a thread does not respond"), "{log}");
}

/// Fills the queue of the service manager, as if it read nothing.
fn fill(folder: &Folder) {
    let sender = UnixDatagram::unbound().expect("a socket");
    sender.set_nonblocking(true).expect("a socket");
    let error = loop {
        if let Err(error) = sender.send_to(b"X=1", folder.path("notify")) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

/// A server waited for the service manager for ever, and ignored every SIGTERM.
#[test]
fn a_service_manager_that_reads_nothing_does_not_stop_signals() {
    let folder = Folder::new();
    let _manager = Manager::new(&folder);
    fill(&folder);
    let mut command = serve(&folder);
    command.env("WATCHDOG_USEC", "1000000");
    let mut server = folder.start(command);
    server.signal(Signal::TERM);
    assert_eq!(server.wait_until_ended(), Some(0));
    let log = server.messages();
    for state in ["READY=1", "STOPPING=1"] {
        assert!(log.contains(&format!("the service manager did not get {state}")), "{log}");
    }
}

#[test]
fn an_abstract_notify_socket_is_not_a_path() {
    let folder = Folder::new();
    let name = folder.text("abstract");
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let manager = Manager(UnixDatagram::bind_addr(&address).expect("a socket"));
    manager.0.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    let mut command = serve(&folder);
    command.env("NOTIFY_SOCKET", format!("@{name}"));
    let _server = folder.start(command);
    assert_eq!(manager.state(), "READY=1");
}

#[test]
fn an_empty_notify_socket_is_none() {
    let folder = Folder::new();
    let mut command = serve(&folder);
    command.env("NOTIFY_SOCKET", "");
    let (status, log) = folder.start(command).stop();
    assert_eq!(status, Some(0));
    assert!(!log.contains("service manager"), "{log}");
}

/// Runs a command to which the parent process has passed a socket, this many times. Returns the
/// exit status and the messages.
fn run_with_socket(folder: &Folder, socket: OwnedFd, times: usize) -> (Option<i32>, String) {
    let command = folder.command(&["completions", "bash"]);
    let script = "exec 3<&0 4<&0; export LISTEN_PID=$$; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(command.get_program()).args(command.get_args());
    let run = shell.env("LISTEN_FDS", times.to_string()).stdin(socket).output();
    let run = run.expect("the command");
    (run.status.code(), String::from_utf8(run.stderr).expect("text"))
}

#[test]
fn a_second_socket_with_the_same_address_is_refused() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let socket = || listener.try_clone().expect("a socket").into();
    assert_eq!(run_with_socket(&folder, socket(), 1), (Some(0), String::new()));
    let expected = format!(
        "nuthatch: socket 2 of LISTEN_FDS: expected each address once, found {address}, which \
         socket 1 has, too: remove one from the socket unit\n"
    );
    assert_eq!(run_with_socket(&folder, socket(), 2), (Some(3), expected));
}

#[test]
fn a_connected_socket_is_refused() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address"));
    let (status, message) = run_with_socket(&folder, client.expect("a connection").into(), 1);
    assert_eq!(status, Some(3), "{message}");
    assert!(message.contains("expected a socket that listens"), "{message}");
    assert!(message.contains("Accept=no"), "{message}");
}
