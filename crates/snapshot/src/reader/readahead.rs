//! Whether the system reads pages ahead: off for snapshots that are larger than the memory.

use super::file::SnapshotFile;
use crate::format::header::Section;
use crate::format::layout::line;
use std::fs::read_to_string;
use std::path::Path;

/// Whether the system also reads the pages around one that is not in the page cache.
///
/// Lookups access pages at random. If a snapshot is larger than the memory, pages that are read
/// ahead displace others that lookups need, and reading them takes longer than reading one page.
/// With readahead off, iteration and verification request the pages that they need next, so they
/// stay fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Readahead {
    /// Off if the files of the snapshot have together at least 64 MiB and are larger than the
    /// memory of the machine, or than the limit of a control group of the process; otherwise on.
    /// Determined when the snapshot is opened.
    #[default]
    Auto,
    /// On: a lookup of a page that is not in the page cache also reads its neighbors. So a new
    /// snapshot is in the page cache after few lookups.
    On,
    /// Off: a lookup reads only the pages that it accesses.
    Off,
}

/// Minimum length of a snapshot in bytes for which the memory is determined: opening a smaller one
/// takes less time than that.
const MIN_LEN: u64 = 64 << 20;
/// Maximum number of bytes that are requested at once: the system may ignore what exceeds its own
/// limit.
const REQUEST_LEN: u64 = 128 << 10;
/// Maximum number of bytes of one partition that are requested.
const MAX_REQUESTED: u64 = 16 << 20;

impl Readahead {
    /// Returns whether to turn readahead off for files of this length in total.
    pub(super) fn is_off(self, len: u64) -> bool {
        match self {
            Self::On => false,
            Self::Off => true,
            Self::Auto => len >= MIN_LEN && exceeds(len, memory(Path::new("/"))),
        }
    }
}

/// Returns whether files of this length do not fit into the memory, if that is known.
fn exceeds(len: u64, memory: Option<u64>) -> bool {
    memory.is_some_and(|memory| len > memory)
}

/// Returns the memory in bytes that this process can have: that of the machine, or the smallest
/// limit of its control group and of those above. `root` is the root of the file system.
fn memory(root: &Path) -> Option<u64> {
    let machine = read_to_string(root.join("proc/meminfo")).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits(line, &root.join("sys/fs/cgroup")));
    machine.into_iter().chain(limits).min()
}

/// Returns the limits of a control group and of those above. `line` is one of `/proc/self/cgroup`.
fn limits(line: &str, mount: &Path) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (mount, file) = match controllers {
        "" => (mount.to_owned(), "memory.max"),
        list if list.split(',').any(|one| one == "memory") => {
            (mount.join("memory"), "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let groups = Path::new(path.trim_start_matches('/')).ancestors();
    let limit = |group: &Path| read_to_string(mount.join(group).join(file)).ok();
    groups.filter_map(|group| limit(group)?.trim().parse().ok()).collect()
}

impl SnapshotFile {
    /// Turns readahead off for the sections that lookups access.
    pub(super) fn turn_readahead_off(&mut self) {
        let Self { map, header, .. } = self;
        map.advise_random(header.index, header.data);
    }

    /// Requests the pages of a partition that is read next, if the system does not read ahead.
    #[inline]
    pub(super) fn will_read(&self, partition: u64) {
        if self.map.is_random() && partition < self.header.partitions() {
            self.request(partition);
        }
    }

    /// Requests the pages of the partition to which this line of the index belongs, if the line is
    /// its first one and the system does not read ahead.
    #[inline]
    pub(super) fn will_read_line(&self, line: u64) {
        let lines_each = u64::from(self.header.lines_per_partition);
        if self.map.is_random() && line.is_multiple_of(lines_each) {
            self.request(line / lines_each);
        }
    }

    #[cold]
    fn request(&self, partition: u64) {
        let header = &self.header;
        let (lines, data) = (self.lines_of(partition), self.directory_entry(partition).data);
        let index = Section {
            offset: header.index.offset + lines.start * line::LEN as u64,
            len: (lines.end - lines.start) * line::LEN as u64,
        };
        // The entry of the directory may be damaged.
        let offset = data.offset.min(header.data.len);
        let len = data.len.min(header.data.len - offset);
        for section in [index, Section { offset: header.data.offset + offset, len }] {
            let end = section.offset + section.len.min(MAX_REQUESTED);
            for at in (section.offset..end).step_by(REQUEST_LEN as usize) {
                self.map.request(Section { offset: at, len: (end - at).min(REQUEST_LEN) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn the_smallest_limit_of_the_control_groups_counts() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            create_dir_all(path.parent().expect("a folder"))?;
            write(path, text)
        };
        assert_eq!(memory(root.path()), None);
        file("proc/meminfo", "MemFree: 1 kB\nMemTotal:       8000 kB\n")?;
        assert_eq!(memory(root.path()), Some(8_192_000));
        file("proc/self/cgroup", "12:cpu,memory:/job\n0::/a/b\n")?;
        file("sys/fs/cgroup/a/b/memory.max", "max\n")?;
        assert_eq!(memory(root.path()), Some(8_192_000));
        file("sys/fs/cgroup/a/memory.max", "4096000\n")?;
        assert_eq!(memory(root.path()), Some(4_096_000));
        file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1024000\n")?;
        assert_eq!(memory(root.path()), Some(1_024_000));
        Ok(())
    }

    #[test]
    fn readahead_is_off_beyond_the_memory() {
        assert!(exceeds(2, Some(1)) && !exceeds(1, Some(1)) && !exceeds(u64::MAX, None));
        assert!(Readahead::Auto.is_off(u64::MAX) && !Readahead::Auto.is_off(MIN_LEN - 1));
        assert!(Readahead::Off.is_off(0) && !Readahead::On.is_off(u64::MAX));
    }
}
