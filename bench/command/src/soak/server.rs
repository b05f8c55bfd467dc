//! The server process of a run, and the samples of its memory and its files.

use crate::failure::Failure;
use nuthatch_bench::Folder;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for the server to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of a block in the metadata of a file.
const BLOCK_BYTES: u64 = 512;

/// A server with a folder of its own. Both are removed on drop.
pub(super) struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    address: String,
    child: Option<Child>,
    folder: Folder,
}

impl Server {
    /// Starts a server with these budgets. Its folder is created in `directory`.
    pub(super) fn start(
        program: &Path,
        directory: &Path,
        memory: u64,
        disk: u64,
    ) -> Result<Self, Failure> {
        let folder = Folder::create(directory).map_err(Failure::of)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(Failure::of)?;
        let address = listener.local_addr().map_err(Failure::of)?.to_string();
        drop(listener);
        let arguments = format!(
            "serve --threads 1 --memory {memory} --disk {disk} --disk-full wait --admin off \
             --memcache off --resp {address}"
        );
        let mut arguments: Vec<_> = arguments.split(' ').map(String::from).collect();
        let data = folder.path().join("data").display().to_string();
        arguments.extend(["--data-dir".into(), data]);
        let program = program.to_owned();
        let mut server = Self { program, arguments, address, child: None, folder };
        server.start_again()?;
        Ok(server)
    }

    /// Starts the server with the files of the previous process.
    pub(super) fn start_again(&mut self) -> Result<(), Failure> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let log = fs::File::create(self.log()).map_err(Failure::of)?;
        let child = command.stderr(log).spawn();
        let failed = |error| Failure::Error(format!("{}: {error}", self.program.display()));
        self.child = Some(child.map_err(failed)?);
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Connects to the server, which may still be starting. Sends a request to be sure of it: after
    /// a kill, the kernel can accept connections to the socket of the killed process for a moment,
    /// and resets them.
    pub(super) fn connect(&mut self) -> Result<TcpStream, Failure> {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            let error = match TcpStream::connect(&self.address).and_then(ping) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            let status = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if status.is_some() || Instant::now() > end {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                let log = log.trim();
                let message = format!("{}: {error}; log of the server: {log}", self.address);
                return Err(Failure::Error(message));
            }
            thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Kills the process with SIGKILL, and waits until it has ended.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Returns the resident memory of the process in bytes, without pages of files.
    pub(super) fn resident_bytes(&self) -> Result<u64, Failure> {
        let pid = self.child.as_ref().map_or(0, Child::id);
        let path = format!("/proc/{pid}/status");
        let failed = |error| Failure::Error(format!("{path}: {error}"));
        let text = fs::read_to_string(&path).map_err(failed)?;
        let kib = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        };
        match (kib("VmRSS:"), kib("RssFile:")) {
            (Some(all), Some(file)) => Ok(all.saturating_sub(file) << 10),
            _ => Err(Failure::Error(format!("{path}: expected VmRSS and RssFile"))),
        }
    }

    /// Returns the bytes of the blocks that are allocated for files of the server.
    pub(super) fn disk_bytes(&self) -> Result<u64, Failure> {
        allocated_bytes(&self.folder.path().join("data")).map_err(Failure::of)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the stream once the server has replied to a request.
fn ping(mut stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(START_TIMEOUT))?;
    stream.write_all(b"PING\r\n")?;
    let mut reply = [0; b"+PONG\r\n".len()];
    stream.read_exact(&mut reply)?;
    if reply != *b"+PONG\r\n" {
        let found = String::from_utf8_lossy(&reply);
        return Err(io::Error::other(format!("expected \"+PONG\", found {found:?}")));
    }
    Ok(stream)
}

/// Returns the allocated bytes of all files below a folder. Files that are removed meanwhile do not
/// count.
fn allocated_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += allocated_bytes(&entry.path())?,
            Ok(metadata) => bytes += metadata.blocks() * BLOCK_BYTES,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
