//! The processes that listen at an address, as `/proc` describes them. No connection is made: that
//! would start a service that systemd starts with its first client.

use super::machine::Machine;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The state of a TCP socket that listens, in `/proc/net/tcp`.
const TCP_LISTEN: &str = "0A";
/// The flags of a unix socket that listens, in `/proc/net/unix`.
const UNIX_LISTEN: &str = "00010000";

/// A socket that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listening {
    inode: String,
    /// The user ID of its process, if the kernel lists it.
    user: Option<String>,
}

/// What has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A cache server that is running.
    Server { pid: u32 },
    /// systemd, for a socket unit.
    SocketUnit,
    /// Another program.
    Program { name: String, pid: u32 },
    /// A process that this user cannot see.
    Unknown { user: Option<String> },
}

impl Owner {
    /// Returns the owner of these sockets. Of several, a cache server is first: systemd also keeps
    /// the sockets that it has passed to one.
    pub(super) fn of(machine: &Machine, sockets: &[Listening]) -> Self {
        let links: Vec<_> =
            sockets.iter().map(|socket| format!("socket:[{}]", socket.inode)).collect();
        let pids = machine.names("proc").into_iter().filter_map(|name| name.parse().ok());
        let owners = pids.filter(|pid| {
            let folder = format!("proc/{pid}/fd");
            let mut files = machine.names(&folder).into_iter();
            files.any(|file| {
                let link = machine.link(&format!("{folder}/{file}"));
                link.is_some_and(|link| links.contains(&link))
            })
        });
        let owners: Vec<_> = owners.map(|pid| Self::process(machine, pid)).collect();
        let is_server = |owner: &&Self| matches!(owner, Self::Server { .. });
        let is_unit = |owner: &&Self| matches!(owner, Self::SocketUnit);
        let first = owners.iter().find(is_server).or_else(|| owners.iter().find(is_unit));
        first.or(owners.first()).cloned().unwrap_or_else(|| Self::Unknown {
            user: sockets.iter().find_map(|socket| socket.user.clone()),
        })
    }

    fn process(machine: &Machine, pid: u32) -> Self {
        let arguments = machine.text(&format!("proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments = arguments.split('\0');
        let program = arguments.next().and_then(|program| Path::new(program).file_name());
        if program.is_some_and(|program| program == "nuthatch") && arguments.next() == Some("serve")
        {
            return Self::Server { pid };
        }
        let name = machine.text(&format!("proc/{pid}/comm")).unwrap_or_default();
        // Also systemd-socket-activate.
        if name.starts_with("systemd") { Self::SocketUnit } else { Self::Program { name, pid } }
    }
}

/// Returns the sockets that listen at a network address, or at all addresses with its port.
pub(super) fn listening_tcp(machine: &Machine, address: SocketAddr) -> Vec<Listening> {
    let files = ["proc/self/net/tcp", "proc/self/net/tcp6"];
    let text: String =
        files.iter().filter_map(|file| machine.text(file)).map(|text| text + "\n").collect();
    let sockets = text.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, local, _, TCP_LISTEN, _, _, _, user, _, inode, ..] = fields[..] else {
            return None;
        };
        overlap(socket_address(local)?, address)
            .then(|| Listening { inode: inode.to_owned(), user: Some(user.to_owned()) })
    });
    sockets.collect()
}

/// Returns the sockets that listen at a path. A socket that was bound to a relative path is not
/// found.
pub(super) fn listening_unix(machine: &Machine, path: &Path) -> Vec<Listening> {
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let text = machine.text("proc/self/net/unix").unwrap_or_default();
    let sockets = text.lines().filter_map(|line| {
        let start = line.find(" /")?;
        let fields: Vec<_> = line[..start].split_whitespace().collect();
        let [_, _, _, UNIX_LISTEN, _, _, inode] = fields[..] else { return None };
        (Path::new(&line[start + 1..]) == path)
            .then(|| Listening { inode: inode.to_owned(), user: None })
    });
    sockets.collect()
}

/// Returns whether two sockets with these addresses can be in each other's way.
pub(super) fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (one_ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    let is_same = one_ip == other_ip || one_ip.is_unspecified() || other_ip.is_unspecified();
    one.port() == other.port() && is_same
}

/// Reads an address of `/proc/net/tcp`, such as `0100007F:18EB`: little-endian numbers of 32 bits,
/// and the port.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let numbers = ip.as_bytes().chunks(8).map(|digits| {
        let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        Some(number.to_le_bytes())
    });
    let numbers: Vec<_> = numbers.collect::<Option<_>>()?;
    let bytes = numbers.concat();
    let ip: IpAddr = match (<[u8; 4]>::try_from(&bytes[..]), <[u8; 16]>::try_from(&bytes[..])) {
        (Ok(bytes), _) => Ipv4Addr::from(bytes).into(),
        (_, Ok(bytes)) => Ipv6Addr::from(bytes).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::machine::tests::with;
    use std::os::unix::fs::symlink;

    const TCP: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n";

    fn row(local: &str, state: &str, inode: u32) -> String {
        format!(
            "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000   998 \
             0 {inode} 1 0000000000000000 100 0 0 10 0\n"
        )
    }

    /// Returns a machine on which these processes have the socket with inode 7 open.
    fn with_owners(owners: &[(&str, &str, &str)]) -> (tempfile::TempDir, Machine) {
        let files: Vec<_> = owners
            .iter()
            .flat_map(|(pid, name, arguments)| {
                let cmdline = (format!("proc/{pid}/cmdline"), *arguments);
                [cmdline, (format!("proc/{pid}/comm"), *name), (format!("proc/{pid}/fd/x"), "")]
            })
            .collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (&path[..], *text)).collect();
        let (folder, machine) = with(&files);
        for (pid, ..) in owners {
            symlink("socket:[7]", folder.path().join(format!("proc/{pid}/fd/3"))).expect("a link");
        }
        (folder, machine)
    }

    #[test]
    fn the_owner_of_a_socket_is_found_without_a_connection() {
        let socket = Listening { inode: "7".to_owned(), user: Some("998".to_owned()) };
        let systemd = ("1", "systemd\n", "/sbin/init\0");
        let server = ("20", "nuthatch\n", "/usr/bin/nuthatch\0serve\0--resp\0");
        let store = ("30", "nuthatch\n", "nuthatch\0store\0serve\0");
        let redis = ("40", "redis-server\n", "redis-server *:6379\0");
        let program = |name: &str, pid| Owner::Program { name: name.to_owned(), pid };
        for (owners, expected) in [
            (&[systemd][..], Owner::SocketUnit),
            (&[systemd, server], Owner::Server { pid: 20 }),
            (&[store], program("nuthatch", 30)),
            (&[redis], program("redis-server", 40)),
            (&[], Owner::Unknown { user: Some("998".to_owned()) }),
        ] {
            let (_folder, machine) = with_owners(owners);
            assert_eq!(Owner::of(&machine, std::slice::from_ref(&socket)), expected);
        }
    }

    #[test]
    fn sockets_at_an_address_are_listed() {
        let local = "00000000000000000000000001000000:18EB";
        let tcp = [TCP, &row("0100007F:18EB", "0A", 1), &row("0100007F:18EB", "01", 2)].concat();
        let tcp6 = [TCP, &row(local, "0A", 3), &row(&"0".repeat(32), "0A", 4)].concat();
        let unix = "Num RefCount Protocol Flags Type St Inode Path\n\
                    0000: 00000002 00000000 00010000 0001 01    12 /run/a b.sock\n\
                    0000: 00000003 00000000 00000000 0001 03 13 /run/a b.sock\n";
        let (_folder, machine) = with(&[
            ("proc/self/net/tcp", &tcp),
            ("proc/self/net/tcp6", &tcp6),
            ("proc/self/net/unix", unix),
        ]);
        let inodes = |sockets: Vec<Listening>| -> Vec<_> {
            sockets.into_iter().map(|socket| socket.inode).collect()
        };
        for (address, expected) in [
            ("127.0.0.1:6379", &["1"][..]),
            ("0.0.0.0:6379", &["1", "3"]),
            ("[::1]:6379", &["3"]),
            ("127.0.0.1:6380", &[]),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(inodes(listening_tcp(&machine, address)), expected, "{address}");
        }
        assert_eq!(inodes(listening_unix(&machine, Path::new("/run/a b.sock"))), ["12"]);
        assert_eq!(listening_unix(&machine, Path::new("/run/a")), []);
    }
}
