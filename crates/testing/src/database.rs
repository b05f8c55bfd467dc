//! Servers of databases that tests start, from the packages of Debian. As root, they run as another
//! user, since they refuse to run as root.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time until a server accepts connections.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running server. Dropping it ends the process.
#[derive(Debug)]
pub struct Database {
    kind: Kind,
    folder: PathBuf,
    port: u16,
    process: Child,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Postgres,
    Mariadb,
}

impl Database {
    /// Starts a new server of PostgreSQL, with the user `postgres`, whose password is `a5ecret`.
    /// Its data is in a folder below this one.
    ///
    /// # Panics
    ///
    /// If it is not installed, or cannot be started.
    #[must_use]
    pub fn postgres(folder: &Path) -> Self {
        let folder = prepare(folder, "postgres");
        let password = folder.join("password");
        fs::write(&password, "a5ecret").expect("a file");
        let mut initialize = as_user(&postgres_program("initdb"), &folder);
        initialize.args(["--no-sync", "-U", "postgres", "--auth=scram-sha-256", "--pwfile"]);
        succeed(initialize.arg(&password).arg("-D").arg(folder.join("data")));
        Self::start(Kind::Postgres, folder)
    }

    /// Starts a new server of MariaDB, with the user `reader`, whose password is `a5ecret`, and the
    /// database `app`. Its data is in a folder below this one.
    ///
    /// # Panics
    ///
    /// If it is not installed, or cannot be started.
    #[must_use]
    pub fn mariadb(folder: &Path) -> Self {
        let folder = prepare(folder, "mariadb");
        let mut initialize = as_user(Path::new("mariadb-install-db"), &folder);
        initialize.args([
            "--no-defaults",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        ]);
        // Files in a folder that other servers share have the same names.
        initialize.arg(format!("--tmpdir={}", folder.display()));
        succeed(initialize.arg(format!("--datadir={}", folder.join("data").display())));
        let server = Self::start(Kind::Mariadb, folder);
        server.execute(
            "create database app; grant all on app.* to reader@'%' identified by 'a5ecret'",
        );
        server
    }

    fn start(kind: Kind, folder: PathBuf) -> Self {
        let port = free_port();
        let process = spawn(kind, &folder, port);
        let mut server = Self { kind, folder, port, process };
        server.wait_until_ready();
        server
    }

    /// Returns the address, without a password.
    #[must_use]
    pub fn address(&self) -> String {
        match self.kind {
            Kind::Postgres => format!("postgresql://postgres@127.0.0.1:{}/postgres", self.port),
            Kind::Mariadb => format!("mysql://reader@127.0.0.1:{}/app", self.port),
        }
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Executes statements, and returns what the last one printed.
    ///
    /// # Panics
    ///
    /// If one fails.
    pub fn execute(&self, statements: &str) -> String {
        let output = self.client(statements).output().expect("a client");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}: {text}");
        String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
    }

    /// Ends the process as a crash does, and starts it again on its data and port.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn crash_and_restart(&mut self) {
        self.kill();
        self.process = spawn(self.kind, &self.folder, self.port);
        self.wait_until_ready();
    }

    /// Sets the certificate of a server of PostgreSQL, and its key, in PEM, and encrypts with them.
    ///
    /// # Panics
    ///
    /// If the server cannot use them.
    pub fn use_certificate(&self, certificate: &str, key: &str) {
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = self.folder.join("data").join(name);
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("its mode");
            if let Some((user, group)) = other_user() {
                chown(&path, Some(user), Some(group)).expect("its owner");
            }
        }
        self.execute("alter system set ssl = on");
        self.execute("select pg_reload_conf()");
        while self.execute("show ssl") != "on" {
            std::thread::yield_now();
        }
    }

    fn client(&self, statements: &str) -> Command {
        let port = self.port.to_string();
        match self.kind {
            Kind::Postgres => {
                let mut client = Command::new(postgres_program("psql"));
                client.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
                client.args(["-p", &port, "-U", "postgres", "-c", statements]);
                client.env("PGPASSWORD", "a5ecret");
                client
            }
            Kind::Mariadb => {
                let mut client = Command::new("mariadb");
                let socket = self.folder.join("socket");
                client.arg("--no-defaults").arg(format!("--socket={}", socket.display()));
                client.args(["--user=root", "--skip-column-names", "--batch", "-e", statements]);
                client
            }
        }
    }

    fn wait_until_ready(&mut self) {
        let start = Instant::now();
        loop {
            let output = self.client("select 1").output().expect("a client");
            if output.status.success() {
                return;
            }
            let ended = self.process.try_wait().expect("a child");
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "the server ended: {}", log());
            assert!(start.elapsed() < PATIENCE, "the server does not answer: {}", log());
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    fn kill(&mut self) {
        if self.kind == Kind::Postgres {
            // The processes of PostgreSQL end by themselves when the first one is gone, but a new
            // server does not start before that.
            let mut stop = as_user(&postgres_program("pg_ctl"), &self.folder);
            let data = self.folder.join("data");
            let _ = stop.arg("stop").args(["-m", "immediate", "-w", "-D"]).arg(data).output();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(kind: Kind, folder: &Path, port: u16) -> Child {
    let log = fs::OpenOptions::new().append(true).create(true).open(folder.join("log"));
    let log = log.expect("a log");
    let data = folder.join("data");
    let mut command = match kind {
        Kind::Postgres => {
            let mut command = as_user(&postgres_program("postgres"), folder);
            command.arg("-D").arg(data).args(["-p", &port.to_string(), "-F"]);
            command.args(["-c", "listen_addresses=127.0.0.1", "-c"]);
            command.arg(format!("unix_socket_directories={}", folder.display()));
            command
        }
        Kind::Mariadb => {
            let mut command = as_user(Path::new("mariadbd"), folder);
            command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
            command.arg(format!("--socket={}", folder.join("socket").display()));
            command.arg(format!("--pid-file={}", folder.join("pid").display()));
            command.arg(format!("--tmpdir={}", folder.display()));
            command.args(["--bind-address=127.0.0.1", &format!("--port={port}")]);
            command.args(["--innodb-flush-log-at-trx-commit=2", "--skip-name-resolve"]);
            command
        }
    };
    command.stdout(log.try_clone().expect("a log")).stderr(log).stdin(Stdio::null());
    command.spawn().expect("the server of the database is needed, from Debian")
}

/// Creates the folder of a server, for the user that it runs as.
fn prepare(folder: &Path, name: &str) -> PathBuf {
    let folder = folder.join(name);
    fs::create_dir(&folder).expect("a folder");
    if let Some((user, group)) = other_user() {
        chown(&folder, Some(user), Some(group)).expect("another owner");
        // The user must reach the folder, through the private ones that the test made.
        for above in folder.ancestors().skip(1) {
            let mode = fs::metadata(above).map_or(0o755, |found| found.permissions().mode());
            if mode & 0o001 != 0 {
                break;
            }
            let _ = fs::set_permissions(above, PermissionsExt::from_mode(0o755));
        }
    }
    folder
}

/// Returns the user without permissions and its group, if this process is root.
fn other_user() -> Option<(u32, u32)> {
    const UNPRIVILEGED: u32 = 65_534;
    rustix::process::geteuid().is_root().then_some((UNPRIVILEGED, UNPRIVILEGED))
}

/// Returns a command that runs as another user if this process is root.
fn as_user(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("HOME", folder);
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group);
    }
    command
}

/// Returns the path of a program of PostgreSQL, which Debian keeps by version.
fn postgres_program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path().join("bin").join(name)).max();
    newest.unwrap_or_else(|| name.into())
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("the server of the database is needed, from Debian");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

/// Returns a port that no program uses now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
