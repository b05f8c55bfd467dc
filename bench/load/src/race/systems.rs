//! The systems of the benchmark, and the commands that start them.

use crate::batches::Work;
use crate::error::Error;
use crate::protocol::Protocol;
use crate::race::server::{EXTSTORE_FILE, Server};
use crate::race::snapshot;
use crate::race::works::{DISK_MEMORY_MIB, Task};
use nuthatch_bench::Folder;
use std::env;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;

/// A system of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Redis without persistence and without I/O threads.
    Redis,
    /// memcached with one thread.
    Memcached,
    /// Nuthatch with one thread and 2 GiB.
    Nuthatch,
    /// Nuthatch with one thread and 16 GiB: its speed should not depend on the budget.
    NuthatchLarge,
    /// Nuthatch with one thread, and the items in a snapshot instead of its cache.
    NuthatchSnapshot,
    /// memcached with one thread and extstore, its storage on disk.
    Extstore,
    /// Nuthatch with one thread and its disk tier.
    NuthatchDisk,
    /// The echo server.
    Echo,
}

/// Disk of these systems, in MiB: enough for all items with the overhead of each system.
const DISK_MIB: u32 = 2048;

/// Threads of extstore that read. Nuthatch has as many.
const READ_THREADS: u32 = 16;

impl System {
    /// All systems.
    pub const ALL: [Self; 8] = [
        Self::Redis,
        Self::Memcached,
        Self::Nuthatch,
        Self::NuthatchLarge,
        Self::NuthatchSnapshot,
        Self::Extstore,
        Self::NuthatchDisk,
        Self::Echo,
    ];

    /// Returns whether this is the program of `--nuthatch`.
    pub fn is_nuthatch(self) -> bool {
        matches!(
            self,
            Self::Nuthatch | Self::NuthatchLarge | Self::NuthatchSnapshot | Self::NuthatchDisk
        )
    }

    /// Returns whether the system stores items on disk.
    pub(crate) fn has_disk(self) -> bool {
        matches!(self, Self::Extstore | Self::NuthatchDisk)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Memcached => "memcached",
            Self::Nuthatch => "nuthatch",
            Self::NuthatchLarge => "nuthatch-16gib",
            Self::NuthatchSnapshot => "nuthatch-snapshot",
            Self::Extstore => "extstore",
            Self::NuthatchDisk => "nuthatch-disk",
            Self::Echo => "echo",
        }
    }

    /// Returns the supported protocols. The first is used if a workload does not require one.
    pub(crate) fn protocols(self) -> &'static [Protocol] {
        match self {
            Self::Redis | Self::Echo => &[Protocol::Resp],
            Self::Nuthatch | Self::NuthatchLarge | Self::NuthatchSnapshot | Self::NuthatchDisk => {
                &[Protocol::Resp, Protocol::Meta, Protocol::Memcache]
            }
            Self::Memcached | Self::Extstore => &[Protocol::Meta, Protocol::Memcache],
        }
    }

    /// Returns the protocol for a workload, or `None` if the system does not support the workload.
    pub(crate) fn protocol_at(self, task: &Task) -> Option<Protocol> {
        let all = self.protocols();
        if self != Self::Echo && self.has_disk() != task.needs_disk {
            return None;
        }
        if self == Self::NuthatchSnapshot && task.work == Work::Set {
            return None;
        }
        task.protocol.map_or(Some(all[0]), |needed| all.contains(&needed).then_some(needed))
    }

    /// Returns whether the system has no items when it starts.
    pub(crate) fn starts_empty(self) -> bool {
        self != Self::NuthatchSnapshot
    }

    /// Starts the server on a core, with free ports. A system with files gets a new folder.
    pub(crate) fn start(
        self,
        task: &Task,
        nuthatch: Option<&PathBuf>,
        core_number: usize,
    ) -> Result<Server, Error> {
        let (first, second) = free_ports()?;
        let has_files = self.has_disk() || self == Self::NuthatchSnapshot;
        let folder = has_files.then(|| Folder::create(&env::temp_dir())).transpose();
        let folder = folder.map_err(io::Error::other)?;
        let mut arguments: Vec<String> = words(&self.arguments(task, [first, second])).collect();
        if self == Self::Redis {
            // An empty argument of --save disables snapshots.
            arguments.push(String::new());
        }
        match (self, &folder) {
            (Self::Extstore, Some(folder)) => {
                let file = folder.path().join(EXTSTORE_FILE);
                arguments.push("-o".into());
                arguments.push(extstore_options(&file.display().to_string()));
            }
            (Self::NuthatchSnapshot, Some(folder)) => {
                let program = nuthatch.ok_or_else(no_program)?;
                let path = snapshot::build(program, task.data, folder.path())?;
                arguments.push("--snapshot".into());
                arguments.push(format!("{}={}", snapshot::NAME, path.display()));
            }
            (_, Some(folder)) => {
                arguments.push("--data-dir".into());
                arguments.push(folder.path().display().to_string());
            }
            (_, None) => {}
        }
        let (program, package) = match self {
            Self::Redis => (PathBuf::from("redis-server"), "Debian has it in redis-server"),
            Self::Memcached | Self::Extstore => {
                (PathBuf::from("memcached"), "Debian has it in memcached")
            }
            Self::Echo => (env::current_exe()?, "it is part of this program"),
            _ => (nuthatch.ok_or_else(no_program)?.clone(), "--nuthatch says where it is"),
        };
        let mut command = Command::new(&program);
        command.args(arguments);
        let memcache = if self.is_nuthatch() { second } else { first };
        let addresses = [local(first), local(memcache)];
        Server::start(command, core_number, addresses, folder).map_err(|error| {
            let what = format!("{}: {error}: {package}", program.display());
            Error::Io(io::Error::new(error.kind(), what))
        })
    }

    /// Returns the arguments that contain no spaces and no paths.
    fn arguments(self, task: &Task, [first, second]: [u16; 2]) -> String {
        // memcached refuses to run as root without a user name.
        let memcached = |mib: u32| format!("-l 127.0.0.1 -p {first} -U 0 -t 1 -m {mib} -u root");
        let nuthatch = |memory: &str| {
            let (resp, memcache) = (local(first), local(second));
            format!(
                "serve --threads 1 --memory {memory} --admin off --resp {resp} \
                 --memcache {memcache}"
            )
        };
        match self {
            Self::Redis => format!(
                "--port {first} --bind 127.0.0.1 --appendonly no --io-threads 1 \
                 --loglevel warning --save"
            ),
            Self::Memcached => memcached(4096),
            Self::Extstore => memcached(DISK_MEMORY_MIB),
            Self::Nuthatch | Self::NuthatchSnapshot => nuthatch("2GiB"),
            Self::NuthatchLarge => nuthatch("16GiB"),
            Self::NuthatchDisk => {
                let common = nuthatch(&format!("{DISK_MEMORY_MIB}MiB"));
                format!("{common} --disk {DISK_MIB}MiB --disk-full wait")
            }
            Self::Echo => {
                let (request, reply) = echo_sizes(task);
                format!("echo --request {request} --reply {reply} --address {}", local(first))
            }
        }
    }
}

/// Returns the options with which extstore keeps as many items as it can. It stores short items on
/// disk, too; its threads do not sleep for long while items arrive; and an eviction moves memory to
/// the slab class that needs it, which is the class of the headers of items on disk.
fn extstore_options(path: &str) -> String {
    format!(
        "ext_path={path}:{DISK_MIB}M,ext_threads={READ_THREADS},ext_item_size=64,\
         ext_max_sleep=5000,slab_automove=2"
    )
}

fn no_program() -> Error {
    Error::Usage(
        "expected --nuthatch PATH, the program of the systems whose names begin with nuthatch"
            .into(),
    )
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_ascii_whitespace().map(String::from)
}

/// Returns two ports that are currently free.
fn free_ports() -> io::Result<(u16, u16)> {
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok((listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()))
}

/// Returns the length of a request of this workload, and the argument for the reply.
fn echo_sizes(task: &Task) -> (usize, String) {
    let mut request = Vec::new();
    let (key, size) = (crate::keys::key(0), task.data.value_bytes);
    if task.work == Work::Set {
        let value = |out: &mut Vec<u8>| out.resize(out.len() + size, b'v');
        Protocol::Resp.set(&key, size, value, &mut request);
        return (request.len(), "ok".into());
    }
    Protocol::Resp.get(&key, &mut request);
    (request.len(), size.to_string())
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|system| system.name() == text);
        found.ok_or_else(|| format!("expected some of {names}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::works::TASKS;

    fn at(name: &str) -> Vec<(System, Protocol)> {
        let task = TASKS.iter().find(|task| task.name == name).expect("a work");
        let protocol = |system: System| Some((system, system.protocol_at(task)?));
        System::ALL.into_iter().filter_map(protocol).collect()
    }

    #[test]
    fn each_system_uses_its_own_protocol_or_that_of_the_workload() {
        use Protocol::{Memcache, Meta, Resp};
        use System::NuthatchSnapshot;
        use System::{Echo, Extstore, Memcached, Nuthatch, NuthatchDisk, NuthatchLarge, Redis};
        let own = [
            (Redis, Resp),
            (Memcached, Meta),
            (Nuthatch, Resp),
            (NuthatchLarge, Resp),
            (NuthatchSnapshot, Resp),
            (Echo, Resp),
        ];
        assert_eq!(at("get100"), own);
        let writers = own.into_iter().filter(|(system, _)| *system != NuthatchSnapshot);
        assert_eq!(at("set100"), writers.collect::<Vec<_>>());
        let disk = [(Extstore, Meta), (NuthatchDisk, Resp), (Echo, Resp)];
        assert_eq!(at("disk1k"), disk);
        for (name, protocol) in [("get100-meta", Meta), ("get100-text", Memcache)] {
            let systems = [Memcached, Nuthatch, NuthatchLarge, NuthatchSnapshot];
            assert_eq!(at(name), systems.map(|system| (system, protocol)));
        }
    }

    #[test]
    fn an_echo_knows_the_length_of_requests() {
        let sizes = |name| TASKS.iter().find(|task| task.name == name).map(echo_sizes);
        assert_eq!(sizes("get100"), Some((36, "100".into())));
        assert_eq!(sizes("set100"), Some((144, "ok".into())));
        assert_eq!(sizes("get10k"), Some((36, "10240".into())));
    }

    #[test]
    fn nuthatch_needs_its_program() {
        let error = System::Nuthatch.start(&TASKS[0], None, 0).expect_err("no program");
        assert!(error.to_string().contains("--nuthatch"), "{error}");
    }

    #[test]
    fn systems_round_trip() {
        for system in System::ALL {
            assert_eq!(system.to_string().parse(), Ok(system));
        }
        assert!("valkey".parse::<System>().is_err_and(|error| error.contains("redis")));
    }
}
