//! Queues of connections, and the addresses of the settings.

use super::finding::Finding;
use super::machine::Machine;
use super::owner::{Listening, Owner, listening_tcp, listening_unix, overlap};
use super::place::Place;
use super::socket_file;
use crate::settings::Settings;
use nuthatch_listen::Address;
use std::io::{self, ErrorKind};
use std::net::TcpListener;

/// Connections that wait to be accepted, when many clients start together.
const WAITING_CONNECTIONS: u64 = 1024;

pub(super) fn examine(machine: &Machine, settings: &Settings) -> Vec<Finding> {
    let all = [
        ("resp", "port of resp", "socket of resp", &settings.resp),
        ("memcache", "port of memcache", "socket of memcache", &settings.memcache),
        ("pmc", "port of pmc", "socket of pmc", &settings.pmc),
        ("mrcache", "port of mrcache", "socket of mrcache", &settings.mrcache),
        ("admin", "port of admin", "socket of admin", &settings.admin),
    ];
    let places = all.into_iter().flat_map(|(setting, port, socket, addresses)| {
        addresses.iter().map(move |listen_address| {
            let address = &listen_address.address;
            let name = if matches!(address, Address::Tcp(_)) { port } else { socket };
            Place { name, setting, address }
        })
    });
    let places: Vec<_> = places.collect();
    queue(machine).into_iter().chain(all_places(machine, &places)).collect()
}

/// Checks the number of connections that can wait to be accepted.
fn queue(machine: &Machine) -> Option<Finding> {
    let (name, path) = ("listen queue", "proc/sys/net/core/somaxconn");
    let max = machine.number(path)?;
    let found = format!("net.core.somaxconn is {max}");
    if max >= WAITING_CONNECTIONS {
        return Some(Finding::ok(name, found));
    }
    let advice = "when many clients connect at once, some wait for a second: raise it";
    Some(Finding::note(name, found, advice).with_sysctl("net.core.somaxconn = 4096"))
}

/// Checks that a server could listen at all addresses together, or that one does.
fn all_places(machine: &Machine, places: &[Place<'_>]) -> Vec<Finding> {
    // Kept until all are checked: two settings can have the same address.
    let mut listeners = Vec::new();
    let findings = places.iter().enumerate().map(|(at, place)| match place.address {
        Address::Tcp(socket) => match TcpListener::bind(socket) {
            Ok(listener) => {
                listeners.push(listener);
                Finding::ok(place.name, format!("{} is free", place.address))
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => repeated(place, &places[..at])
                .unwrap_or_else(|| in_use(machine, place, &listening_tcp(machine, *socket))),
            Err(error) => unusable(place, &error),
        },
        Address::Unix(path) => repeated(place, &places[..at]).unwrap_or_else(|| {
            match &listening_unix(machine, path)[..] {
                [] => socket_file::examine(place, path),
                sockets => in_use(machine, place, sockets),
            }
        }),
    });
    findings.collect()
}

/// Returns the problem of an address that an earlier setting has, too.
fn repeated(place: &Place<'_>, earlier: &[Place<'_>]) -> Option<Finding> {
    let conflicts = |earlier: &&Place<'_>| match (earlier.address, place.address) {
        (Address::Tcp(one), Address::Tcp(other)) => overlap(*one, *other),
        (one, other) => one == other,
    };
    let Place { setting, address, .. } = earlier.iter().find(conflicts)?;
    let found = format!("{} is already used by {setting}, at {address}", place.address);
    let advice = format!("set {} to another address", place.setting);
    Some(Finding::problem(place.name, found, advice))
}

/// Returns the finding of an address at which processes listen.
fn in_use(machine: &Machine, place: &Place<'_>, sockets: &[Listening]) -> Finding {
    let Place { name, setting, address } = place;
    let other = format!("set {setting} to another address");
    match Owner::of(machine, sockets) {
        Owner::Server { pid } => {
            Finding::ok(name, format!("{address} is in use by nuthatch serve, process {pid}"))
        }
        Owner::SocketUnit => Finding::note(
            name,
            format!("{address} is in use by systemd, for a socket unit"),
            format!("nothing, if it is the socket unit of this server; otherwise {other}"),
        ),
        Owner::Program { name: program, pid } => Finding::problem(
            name,
            format!("{address} is in use by {program}, process {pid}"),
            format!("stop it, or {other}"),
        ),
        Owner::Unknown { user } => {
            let user = user.map(|user| format!(" of user {user}")).unwrap_or_default();
            let advice = format!(
                "run doctor as root to see which; nothing, if it is this server or its socket \
                 unit, such as nuthatch.socket; otherwise stop it, or {other}"
            );
            let found = format!("{address} is in use by a process{user} that doctor cannot see");
            Finding::note(name, found, advice)
        }
    }
}

/// Returns the problem of an address that the system refuses.
fn unusable(place: &Place<'_>, error: &io::Error) -> Finding {
    let Place { name, setting, address } = place;
    let advice = match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "set {setting} to a port from 1024 on, or allow low ports: \
             AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit"
        ),
        ErrorKind::AddrNotAvailable => format!(
            "no network interface has this address: set {setting} to an address of this machine, \
             as `ip address` lists them"
        ),
        _ => format!("set {setting} to another address"),
    };
    Finding::problem(name, format!("{address}: {error}"), advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;
    use crate::commands::doctor::machine::tests::with;

    /// Returns the status of each address, for settings with these names.
    fn statuses(places: &[(&'static str, &str)]) -> Vec<(Status, String)> {
        let parse = |(setting, text): &(&'static str, &str)| {
            (*setting, text.parse::<Address>().expect("an address"))
        };
        let addresses: Vec<_> = places.iter().map(parse).collect();
        let places =
            addresses.iter().map(|(setting, address)| Place { name: "port", setting, address });
        let findings = all_places(&Machine::this(), &places.collect::<Vec<_>>());
        findings.into_iter().map(|finding| (finding.status, finding.found)).collect()
    }

    #[test]
    fn a_short_queue_is_noted() {
        for (max, expected) in [("128", Status::Note), ("4096", Status::Ok)] {
            let (_folder, machine) = with(&[("proc/sys/net/core/somaxconn", max)]);
            let finding = queue(&machine).expect("a finding");
            assert_eq!(finding.status, expected, "{max}");
        }
    }

    #[test]
    fn a_port_of_another_program_is_a_problem() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (status, found) = statuses(&[("resp", &address)]).remove(0);
        assert_eq!(status, Status::Problem, "{found}");
        assert!(found.ends_with(&format!(", process {}", std::process::id())), "{found}");
        drop(listener);
        assert_eq!(statuses(&[("resp", &address)])[0].0, Status::Ok);
    }

    #[test]
    fn one_address_of_two_settings_is_a_problem() {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let free = free.expect("a free port").to_string();
        for address in [&free, "unix:nuthatch.sock"] {
            let all = statuses(&[("resp", address), ("memcache", address)]);
            assert_eq!((all[0].0, all[1].0), (Status::Ok, Status::Problem), "{all:?}");
            let expected = format!("{address} is already used by resp, at {address}");
            assert_eq!(all[1].1, expected);
        }
        let all = statuses(&[("resp", "127.0.0.1:0"), ("memcache", "127.0.0.1:0")]);
        assert_eq!((all[0].0, all[1].0), (Status::Ok, Status::Ok), "{all:?}");
    }

    #[test]
    fn advice_is_for_the_kind_of_error() {
        let address = "192.0.2.1:6379".parse().expect("an address");
        let place = Place { name: "port", setting: "resp", address: &address };
        let advice = |kind: ErrorKind| unusable(&place, &kind.into()).advice.expect("advice");
        assert!(advice(ErrorKind::PermissionDenied).contains("CAP_NET_BIND_SERVICE"));
        assert!(advice(ErrorKind::AddrNotAvailable).contains("network interface"));
        assert_eq!(advice(ErrorKind::OutOfMemory), "set resp to another address");
    }
}
