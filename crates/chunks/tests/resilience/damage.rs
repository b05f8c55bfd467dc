//! Damage to the files of the folder.

use nuthatch_testing::random::Random;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Number of kinds of damage.
pub(crate) const KINDS: usize = 9;

#[derive(Clone, Copy)]
pub(crate) enum Damage {
    FlipSegment,
    CutSegment,
    DeleteSegment,
    FlipIndex,
    ScrambleIndex,
    CutIndex,
    DeleteIndex,
    FlipSettings,
    DeleteSettings,
}

impl Damage {
    pub(crate) fn any(random: &mut Random) -> Self {
        match random.below(41) {
            0..14 => Self::FlipSegment,
            14..20 => Self::CutSegment,
            20..26 => Self::DeleteSegment,
            26..36 => Self::FlipIndex,
            36 => Self::ScrambleIndex,
            37 => Self::CutIndex,
            38 => Self::FlipSettings,
            39 => Self::DeleteSettings,
            _ => Self::DeleteIndex,
        }
    }

    /// Damages a file. Returns whether there was one.
    pub(crate) fn inflict(self, folder: &Path, random: &mut Random) -> bool {
        match self {
            Self::FlipSegment | Self::CutSegment | Self::DeleteSegment => {
                self.damage_segment(folder, random).is_some()
            }
            Self::FlipSettings | Self::DeleteSettings => {
                self.damage_settings(&folder.join("settings"), random).is_some()
            }
            _ => self.damage_index(&folder.join("index"), random).is_some(),
        }
    }

    fn damage_segment(self, folder: &Path, random: &mut Random) -> Option<()> {
        let entries = std::fs::read_dir(folder).ok()?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let segments: Vec<_> =
            paths.filter(|p| p.extension().is_some_and(|e| e == "seg")).collect();
        let path = segments.get(random.below(segments.len().max(1) as u64) as usize)?;
        let file = open(path)?;
        let len = file.metadata().ok()?.len();
        match self {
            Self::FlipSegment => flip(&file, random.below(len.max(1)), random),
            Self::CutSegment => file.set_len(random.below(len.max(1))).ok(),
            _ => std::fs::remove_file(path).ok(),
        }
    }

    fn damage_settings(self, path: &Path, random: &mut Random) -> Option<()> {
        match self {
            Self::FlipSettings => flip(&open(path)?, random.below(64), random),
            _ => std::fs::remove_file(path).ok(),
        }
    }

    fn damage_index(self, path: &Path, random: &mut Random) -> Option<()> {
        let file = open(path)?;
        let len = file.metadata().ok()?.len();
        match self {
            Self::FlipIndex => {
                let most = if random.below(4) == 0 { 4096 } else { len };
                flip(&file, random.below(most.min(len).max(1)), random)
            }
            Self::ScrambleIndex => {
                (0..200).try_for_each(|_| flip(&file, random.below(len.max(1)), random))
            }
            Self::CutIndex => file.set_len(random.below(len.max(1))).ok(),
            _ => std::fs::remove_file(path).ok(),
        }
    }
}

fn open(path: &Path) -> Option<File> {
    OpenOptions::new().read(true).write(true).open(path).ok()
}

fn flip(file: &File, offset: u64, random: &mut Random) -> Option<()> {
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).ok()?;
    file.write_all_at(&[byte[0] ^ 1 << random.below(8)], offset).ok()
}
