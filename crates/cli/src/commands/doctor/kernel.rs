//! The version of the kernel, and `io_uring`.

use super::finding::Finding;
use super::machine::Machine;
use nuthatch_server::IoBackend;

/// The first version with all operations of `io_uring` that the server uses.
const IO_URING_VERSION: (u32, u32) = (6, 1);

/// Checks the version of the kernel.
pub(super) fn version(machine: &Machine) -> Finding {
    let name = "kernel";
    let Some(release) = machine.text("proc/sys/kernel/osrelease") else {
        return Finding::note(name, "an unknown version", "mount /proc");
    };
    let found = format!("Linux {release}");
    let (major, minor) = IO_URING_VERSION;
    if parse(&release).is_some_and(|version| version >= IO_URING_VERSION) {
        return Finding::ok(name, found);
    }
    let advice = format!("with Linux {major}.{minor} or later, the server uses io_uring");
    Finding::note(name, found, advice)
}

/// Returns the first two numbers of a release such as `6.1.0-32-amd64`.
fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Checks that this process can use `io_uring`.
pub(super) fn io_uring(machine: &Machine) -> Finding {
    let name = "io_uring";
    let Err(error) = IoBackend::check_uring() else {
        return Finding::ok(name, "works");
    };
    let found = format!("does not work: {error}; the server uses epoll, which is slower");
    let disabled = machine.number("proc/sys/kernel/io_uring_disabled").unwrap_or(0);
    if disabled > 0 {
        let advice = format!("kernel.io_uring_disabled is {disabled}: allow it");
        return Finding::note(name, found, advice).with_sysctl("kernel.io_uring_disabled = 0");
    }
    let advice = "if this is a container, its seccomp profile may forbid it: allow io_uring_setup, \
                  io_uring_enter and io_uring_register";
    Finding::note(name, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;
    use crate::commands::doctor::machine::tests::with;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (release, expected) in [
            ("6.1.0-32-amd64\n", Status::Ok),
            ("6.12\n", Status::Ok),
            ("10.0.1\n", Status::Ok),
            ("5.15.0\n", Status::Note),
            ("unknown\n", Status::Note),
        ] {
            let (_folder, machine) = with(&[("proc/sys/kernel/osrelease", release)]);
            assert_eq!(version(&machine).status, expected, "{release}");
        }
    }
}
