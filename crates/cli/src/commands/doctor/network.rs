//! Queues of connections, and ports.

use super::finding::Finding;
use super::machine::Machine;
use crate::settings::Settings;
use nuthatch_listen::Address;
use nuthatch_listen::admin::Client;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

/// The maximum time in which a server that listens says what it is.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Connections that wait to be accepted, when many clients start together.
const WAITING_CONNECTIONS: u64 = 1024;

pub(super) fn examine(machine: &Machine, settings: &Settings) -> Vec<Finding> {
    let all = [
        ("resp", &settings.resp),
        ("memcache", &settings.memcache),
        ("pmc", &settings.pmc),
        ("mrcache", &settings.mrcache),
        ("admin", &settings.admin),
    ];
    let admin: Vec<_> = settings.admin.iter().map(|admin| &admin.address).collect();
    let ports = all.into_iter().flat_map(|(setting, addresses)| {
        addresses.iter().filter_map(|address| port(setting, &address.address, &admin))
    });
    queue(machine).into_iter().chain(ports).collect()
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

/// Checks that a server could listen at an address, or that one of ours does.
fn port(setting: &'static str, address: &Address, admin: &[&Address]) -> Option<Finding> {
    let Address::Tcp(socket) = address else { return None };
    let name = match setting {
        "resp" => "port of resp",
        "memcache" => "port of memcache",
        "pmc" => "port of pmc",
        "mrcache" => "port of mrcache",
        _ => "port of admin",
    };
    Some(match TcpListener::bind(socket) {
        Ok(_) => Finding::ok(name, format!("{address} is free")),
        Err(error)
            if error.kind() == ErrorKind::AddrInUse && admin.iter().any(|admin| is_ours(admin)) =>
        {
            Finding::ok(name, format!("{address} is in use, and a server of Nuthatch is running"))
        }
        Err(error) => {
            let advice = format!("stop what uses it, or set {setting} to another address");
            Finding::problem(name, format!("{address}: {error}"), advice)
        }
    })
}

/// Returns whether a server of Nuthatch has its admin endpoint at this address.
fn is_ours(admin: &Address) -> bool {
    let client = Client::new(admin.clone(), TIMEOUT);
    let text = client.and_then(|client| client.get("/metrics"));
    text.is_ok_and(|text| text.contains("nuthatch_build_info"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;
    use crate::commands::doctor::machine::tests::with;

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
        let address = Address::Tcp(listener.local_addr().expect("an address"));
        let finding = port("resp", &address, &[]).expect("a finding");
        assert_eq!(finding.status, Status::Problem);
        drop(listener);
        assert_eq!(port("resp", &address, &[]).expect("a finding").status, Status::Ok);
        assert_eq!(port("resp", &Address::Unix("a.sock".into()), &[]), None);
    }
}
