//! The memory that is available to this process.

use crate::logs::warn;
use nuthatch_units::bytes;
use std::fs;
use std::path::{Path, PathBuf};

/// A default budget takes at most this many quarters of the available memory.
const DEFAULT_QUARTERS: u64 = 3;

/// The memory available to this process, and what limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    pub(crate) bytes: u64,
    pub(crate) source: String,
}

impl MemoryLimit {
    /// Returns the limit of this process: the memory of the machine, or the smallest limit of its
    /// control group (version 1 or 2) and of the groups above that. `None` if the system does not
    /// report them.
    pub(crate) fn of_this_process() -> Option<Self> {
        Self::read(Path::new("/proc"))
    }

    /// Returns the limit as [`of_this_process`](Self::of_this_process), with the path of `/proc`.
    fn read(proc: &Path) -> Option<Self> {
        let machine = fs::read_to_string(proc.join("meminfo")).ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(Self { bytes: kib.checked_mul(1024)?, source: "the machine's memory".to_owned() })
        });
        let read = |name: &str| fs::read_to_string(proc.join("self").join(name));
        let (groups, mounts) = (read("cgroup").ok()?, read("mountinfo").ok()?);
        let of_groups = groups.lines().flat_map(|line| limits_of_group(line, &mounts));
        machine.into_iter().chain(of_groups).min_by_key(|limit| limit.bytes)
    }

    /// Returns the limit less the budget of another part of the process.
    pub(crate) fn beside(&self, other: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(other), source: self.source.clone() }
    }

    /// Returns the default budget: `usual`, or less if there is little memory.
    pub(crate) fn default_budget(&self, usual: u64) -> u64 {
        let max = self.bytes / 4 * DEFAULT_QUARTERS;
        // Whole MiB are easier to read.
        usual.min(max >> 20 << 20)
    }
}

/// Returns the limits of a group and of those above it. `line` is one of `/proc/self/cgroup`.
fn limits_of_group(line: &str, mounts: &str) -> Vec<MemoryLimit> {
    let mut fields = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
    else {
        return Vec::new();
    };
    let file = match controllers {
        "" => "memory.max",
        list if list.split(',').any(|one| one == "memory") => "memory.limit_in_bytes",
        _ => return Vec::new(),
    };
    let Some((root, mounted_at)) = mount(mounts, controllers.is_empty()) else { return Vec::new() };
    // The mount shows the hierarchy from `root` on; a group outside of it is that of the mount.
    let below = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(""));
    let groups = below.ancestors().map(|group| mounted_at.join(group).join(file));
    groups
        .filter_map(|file| {
            let bytes = fs::read_to_string(&file).ok()?.trim().parse().ok()?;
            let source = format!("the limit of its control group, {}", file.display());
            Some(MemoryLimit { bytes, source })
        })
        .collect()
}

/// Returns the mount of the control groups, of version 2 or of memory in version 1: the group at
/// the root of the mount, and the folder.
fn mount(mounts: &str, version_2: bool) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, at) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1).unwrap_or(""));
        let has_memory = || options.split(',').any(|option| option == "memory");
        let is_wanted =
            if version_2 { kind == "cgroup2" } else { kind == "cgroup" && has_memory() };
        is_wanted.then(|| (unescaped(root), unescaped(at)))
    })
}

/// Unescapes a path of `mountinfo`, in which a space is `\040`.
fn unescaped(path: &str) -> PathBuf {
    path.replace("\\040", " ").replace("\\134", "\\").into()
}

/// Returns the default budget of memory, or a lower one with a warning if this process can have
/// less.
pub(crate) fn default_memory(name: &str, usual: u64, limit: Option<&MemoryLimit>) -> u64 {
    let Some(limit) = limit else { return usual };
    let lower = limit.default_budget(usual);
    if lower < usual {
        let (lower, usual, all) = (bytes(lower), bytes(usual), bytes(limit.bytes));
        let why = format!("only {all} are available ({})", limit.source);
        warn(format_args!("{name} is {lower} instead of {usual}: {why}"));
    }
    lower
}

/// Checks that a budget fits into what this process can have.
///
/// # Errors
///
/// Returns how much memory is available, and what limits it.
pub(crate) fn check_memory(limit: Option<&MemoryLimit>, wanted: u64) -> Result<(), String> {
    match limit {
        Some(MemoryLimit { bytes: limit, source }) if wanted > *limit => {
            let (limit, wanted) = (bytes(*limit), bytes(wanted));
            Err(format!("expected at most {limit} ({source}), found {wanted}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that replaces `/proc` and the mounts.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(mem_total_kib: u64, groups: &str, mounts: &[(&str, &str, &str)]) -> Self {
            let machine = Self(tempfile::tempdir().expect("a folder"));
            machine
                .write("proc/meminfo", &format!("MemTotal:   {mem_total_kib} kB\nMemFree: 1 kB"));
            machine.write("proc/self/cgroup", groups);
            let root = machine.0.path().display().to_string();
            let mounts = mounts.iter().map(|(mount_root, at, system)| {
                format!("31 23 0:27 {mount_root} {root}/{at} rw,nosuid shared:9 - {system}\n")
            });
            machine.write("proc/self/mountinfo", &mounts.collect::<String>());
            machine
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }

        fn limit(&self) -> (u64, String) {
            let limit = MemoryLimit::read(&self.0.path().join("proc")).expect("a limit");
            let root = format!("{}/", self.0.path().display());
            (limit.bytes, limit.source.replace(&root, ""))
        }
    }

    const V2: &str = "cgroup2 cgroup rw,nsdelegate";
    const V1: &str = "cgroup cgroup rw,memory";

    fn of_group(bytes: u64, file: &str) -> (u64, String) {
        (bytes, format!("the limit of its control group, {file}"))
    }

    #[test]
    fn the_smallest_limit_of_nested_groups_holds() {
        let machine = Machine::new(8 << 20, "0::/a/b/c\n", &[("/", "cg", V2)]);
        assert_eq!(machine.limit(), (8 << 30, "the machine's memory".to_owned()));
        machine.write("cg/a/b/c/memory.max", "max\n");
        assert_eq!(machine.limit().0, 8 << 30);
        machine.write("cg/a/b/memory.max", "2147483648\n");
        machine.write("cg/a/memory.max", "1073741824\n");
        assert_eq!(machine.limit(), of_group(1 << 30, "cg/a/memory.max"));
        machine.write("cg/a/b/c/memory.max", "1048576\n");
        assert_eq!(machine.limit(), of_group(1 << 20, "cg/a/b/c/memory.max"));
    }

    #[test]
    fn version_1_and_hybrid_hierarchies_are_read() {
        let groups = "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/docker/abc\n";
        let mounts = [("/", "unified", V2), ("/", "memory", V1)];
        let machine = Machine::new(8 << 20, groups, &mounts);
        // As version 1 writes that there is no limit.
        machine.write("memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(machine.limit().0, 8 << 30);
        machine.write("memory/docker/memory.limit_in_bytes", "536870912\n");
        let file = "memory/docker/memory.limit_in_bytes";
        assert_eq!(machine.limit(), of_group(512 << 20, file));
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        // With a namespace of its own, and with paths of the machine.
        for (groups, mount_root) in [("0::/\n", "/"), ("0::/docker/abc\n", "/docker/abc")] {
            let machine = Machine::new(8 << 20, groups, &[(mount_root, "cg", V2)]);
            machine.write("cg/memory.max", "67108864\n");
            assert_eq!(machine.limit(), of_group(64 << 20, "cg/memory.max"), "{groups}");
        }
    }

    #[test]
    fn a_default_budget_leaves_a_quarter_of_the_memory() {
        let limit = |bytes| MemoryLimit { bytes, source: String::new() };
        assert_eq!(limit(64 << 30).default_budget(1 << 30), 1 << 30);
        assert_eq!(limit(512 << 20).default_budget(1 << 30), 384 << 20);
        // The default of a cache with a store took three quarters of all, and was refused then.
        let (machine, store) = (limit(512 << 20), 256 << 20);
        let cache = machine.beside(store).default_budget(1 << 30);
        assert_eq!(cache, 192 << 20);
        assert!(check_memory(Some(&machine), cache + store).is_ok());
        let problem = check_memory(Some(&limit(1 << 30)), (1 << 30) + 1);
        assert!(problem.is_err() && check_memory(Some(&limit(1 << 30)), 1 << 30).is_ok());
    }
}
