//! A server process that the benchmark starts and stops.

use crate::address::Address;
use crate::cpu;
use crate::error::Error;
use crate::protocol::Protocol;
use nuthatch_bench::Folder;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for a server to start.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Name of the file of extstore in the folder of its server.
pub(crate) const EXTSTORE_FILE: &str = "extstore";

/// A server process. It is killed on drop.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    resp: Address,
    memcache: Address,
    /// The folder of the server, removed after the process has ended.
    folder: Option<Folder>,
}

impl Server {
    /// Starts a command on a core. The addresses are those of RESP and of memcached's protocols.
    pub(crate) fn start(
        mut command: Command,
        core_number: usize,
        [resp, memcache]: [String; 2],
        folder: Option<Folder>,
    ) -> io::Result<Self> {
        // In its own process group, the server does not receive Ctrl-C, and the benchmark stops it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let child = cpu::on_core(core_number, || command.spawn())??;
        let (resp, memcache) = (Address::Tcp(resp), Address::Tcp(memcache));
        Ok(Self { child, resp, memcache, folder })
    }

    /// Calls `reach` until it does not fail to connect. Fails if the server exits or exceeds
    /// [`START_TIMEOUT`].
    pub(crate) fn wait_until(
        &mut self,
        mut reach: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            match reach() {
                Err(Error::Connect { .. }) if Instant::now() < end => {}
                result => return result,
            }
            if let Some(status) = self.child.try_wait()? {
                let what = format!("the server for {} ended at its start: {status}", self.resp);
                return Err(Error::Io(io::Error::other(what)));
            }
            thread::yield_now();
        }
    }

    pub(crate) fn address(&self, protocol: Protocol) -> &Address {
        match protocol {
            Protocol::Memcache | Protocol::Meta => &self.memcache,
            Protocol::Resp | Protocol::Mrcache | Protocol::Pmc => &self.resp,
        }
    }

    /// Returns the file of extstore, if this is its server.
    pub(crate) fn extstore_file(&self) -> Option<PathBuf> {
        let file = self.folder.as_ref()?.path().join(EXTSTORE_FILE);
        file.exists().then_some(file)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    /// Kills the process. A cache server has no data to save.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
