//! A server that a race has started, and stops.

use crate::address::Address;
use crate::cpu;
use crate::error::Error;
use crate::protocol::Protocol;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server that takes longer to start is not going to.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    resp: Address,
    memcache: Address,
}

impl Server {
    /// Starts a command on a core. The addresses are those for RESP and for memcached's protocols.
    pub(crate) fn start(
        mut command: Command,
        core_number: usize,
        [resp, memcache]: [String; 2],
    ) -> io::Result<Self> {
        // In a group of its own, Ctrl-C reaches us alone, and the order of things is ours.
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let child = cpu::on_core(core_number, || command.spawn())??;
        Ok(Self { child, resp: Address::Tcp(resp), memcache: Address::Tcp(memcache) })
    }

    /// Calls `reach` until it succeeds, while the server is running and has not had its time.
    pub(crate) fn wait_until(
        &mut self,
        mut reach: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let end = Instant::now() + PATIENCE;
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

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    /// A cache has nothing to save, so it may end at once.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
