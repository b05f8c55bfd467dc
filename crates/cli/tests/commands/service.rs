//! What servers report to the service manager that has started them.

use crate::folder::Folder;
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
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
