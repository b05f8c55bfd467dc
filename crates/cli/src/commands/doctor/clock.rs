//! The clock, which each request reads.

use super::finding::Finding;
use super::machine::Machine;

/// Sources that are read without a system call.
const FAST_SOURCES: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// Checks that reading the clock does not take a system call.
pub(super) fn source(machine: &Machine) -> Finding {
    let name = "clock source";
    let path = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Some(found) = machine.text(path) else {
        return Finding::note(name, "unknown", "mount /sys");
    };
    if FAST_SOURCES.contains(&found.as_str()) {
        return Finding::ok(name, found);
    }
    let advice = "each request reads the clock, and this source needs a system call: boot with \
                  clocksource=tsc if the processor has an invariant TSC";
    Finding::note(name, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;
    use crate::commands::doctor::machine::tests::with;

    #[test]
    fn slow_sources_are_noted() {
        let path = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        for (text, expected) in [("tsc\n", Status::Ok), ("hpet\n", Status::Note)] {
            let (_folder, machine) = with(&[(path, text)]);
            assert_eq!(source(&machine).status, expected, "{text}");
        }
        assert_eq!(source(&with(&[]).1).status, Status::Note);
    }
}
