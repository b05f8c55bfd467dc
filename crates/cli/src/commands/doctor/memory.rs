//! Memory, swap, overcommit and huge pages.

use super::finding::Finding;
use super::machine::Machine;
use super::report::number_of;
use crate::commands::serve::check_memory;
use crate::outcome::Failure;
use crate::process::MemoryLimit;
use crate::settings::LoadedSettings;
use nuthatch_units::bytes;

/// Memory beside the budget: the program, its threads, and blocks that the allocator keeps.
const OTHER_MEMORY: u64 = 64 << 20;

pub(super) fn examine(machine: &Machine, loaded: &LoadedSettings) -> Vec<Finding> {
    let findings = [Some(budget(loaded)), swap(machine), overcommit(machine), huge_pages(machine)];
    findings.into_iter().flatten().collect()
}

/// Checks that the budget fits into the memory of the machine and of the control group.
fn budget(loaded: &LoadedSettings) -> Finding {
    let name = "memory";
    let memory = loaded.settings.memory;
    let Some(limit) = MemoryLimit::of_this_process() else {
        return Finding::note(name, "the kernel does not say how much there is", "mount /proc");
    };
    let found =
        format!("a budget of {}, and {} is {}", bytes(memory), limit.source, bytes(limit.bytes));
    if let Err(Failure::Usage(problem) | Failure::Error(problem)) = check_memory(loaded) {
        // Without a setting, the server lowers the default.
        if loaded.is_set("memory") {
            return Finding::problem(name, found, problem);
        }
    }
    if memory.saturating_add(OTHER_MEMORY) > limit.bytes {
        let most = bytes(limit.bytes.saturating_sub(OTHER_MEMORY));
        let advice = format!("lower memory to at most {most}, or raise the limit");
        return Finding::note(name, found, advice);
    }
    Finding::ok(name, found)
}

/// Checks that the kernel does not move items to a disk.
fn swap(machine: &Machine) -> Option<Finding> {
    let name = "swap";
    let areas = machine.text("proc/swaps")?.lines().skip(1).count();
    let swappiness = machine.number("proc/sys/vm/swappiness")?;
    if areas == 0 {
        return Some(Finding::ok(name, "none"));
    }
    let found = format!("{}, vm.swappiness is {swappiness}", number_of(areas, "area"));
    if swappiness <= 10 {
        return Some(Finding::ok(name, found));
    }
    let advice = "a lookup of an item in swap takes milliseconds: lower vm.swappiness, or set \
                  MemorySwapMax=0 in the systemd unit";
    Some(Finding::note(name, found, advice).with_sysctl("vm.swappiness = 1"))
}

/// Checks that the kernel gives the address space that stores and snapshots map.
fn overcommit(machine: &Machine) -> Option<Finding> {
    let (name, mode) = ("overcommit", machine.number("proc/sys/vm/overcommit_memory")?);
    let found = format!("vm.overcommit_memory is {mode}");
    if mode != 2 {
        return Some(Finding::ok(name, found));
    }
    let advice = "the kernel counts memory that is reserved and not used yet: large budgets and \
                  stores can be refused";
    Some(Finding::note(name, found, advice).with_sysctl("vm.overcommit_memory = 0"))
}

/// Checks that the cache can have huge pages, which it asks for.
fn huge_pages(machine: &Machine) -> Option<Finding> {
    let name = "huge pages";
    let text = machine.text("sys/kernel/mm/transparent_hugepage/enabled")?;
    let mode = text.split_once('[')?.1.split_once(']')?.0;
    let found = format!("transparent huge pages: {mode}");
    if mode != "never" {
        return Some(Finding::ok(name, found));
    }
    let advice = "lookups in a large cache are slower with small pages: `echo madvise > \
                  /sys/kernel/mm/transparent_hugepage/enabled` as root, and at every start of the \
                  machine";
    Some(Finding::note(name, found, advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;
    use crate::commands::doctor::machine::tests::with;

    fn status(finding: Option<Finding>) -> Option<Status> {
        finding.map(|finding| finding.status)
    }

    #[test]
    fn swap_is_noted_if_the_kernel_uses_it_readily() {
        const HEAD: &str = "Filename Type Size Used Priority\n";
        let area = &format!("{HEAD}/dev/vda2 partition 1 0 -2\n");
        for (swaps, swappiness, expected) in
            [(HEAD, "60", Status::Ok), (area, "1", Status::Ok), (area, "60", Status::Note)]
        {
            let files = [("proc/swaps", swaps), ("proc/sys/vm/swappiness", swappiness)];
            let (_folder, machine) = with(&files);
            assert_eq!(status(swap(&machine)), Some(expected), "{swaps} {swappiness}");
        }
    }

    #[test]
    fn modes_are_examined() {
        let path = "proc/sys/vm/overcommit_memory";
        for (mode, expected) in [("0", Status::Ok), ("1", Status::Ok), ("2", Status::Note)] {
            let (_folder, machine) = with(&[(path, mode)]);
            assert_eq!(status(overcommit(&machine)), Some(expected), "{mode}");
        }
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        for (text, expected) in [
            ("[always] madvise never\n", Status::Ok),
            ("always [madvise] never\n", Status::Ok),
            ("always madvise [never]\n", Status::Note),
        ] {
            let (_folder, machine) = with(&[(path, text)]);
            assert_eq!(status(huge_pages(&machine)), Some(expected), "{text}");
        }
        let (_folder, machine) = with(&[]);
        assert_eq!(huge_pages(&machine), None);
    }
}
