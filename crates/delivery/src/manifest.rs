//! The manifest of a destination: its generations, as JSON. `docs/formats/delivery.md` has the
//! format.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::time::SystemTime;

/// The version of the format that this build reads and writes.
pub(crate) const FORMAT: u32 = 1;
/// Maximum length of a manifest in bytes.
pub(crate) const MAX_BYTES: u64 = 64 << 20;
/// Maximum serial number and number of a generation: those that JSON has in all languages.
pub(crate) const MAX_NUMBER: u64 = (1 << 53) - 1;
/// Maximum number of files of a generation: a manifest of a set and its shards.
const MAX_FILES: usize = 65_537;
/// Maximum length of the name of a file in bytes, that of Linux without the suffix of a partial
/// file.
const MAX_NAME_LEN: usize = 240;

/// The generations of a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub(crate) format: u32,
    /// The number of this version of the manifest. Each version has a higher one than the last.
    pub serial: u64,
    /// The number of the generation that followers fetch.
    pub current: u64,
    /// The generations, in ascending order of their numbers.
    pub generations: Vec<Generation>,
}

/// The field of a manifest that determines how the others are read.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// A snapshot that was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The number of the generation, from one.
    pub id: u64,
    /// The time of publication.
    #[serde(with = "timestamps")]
    pub created: SystemTime,
    /// The number of entries of the snapshot.
    pub entries: u64,
    /// The metadata of the snapshot. Values that are not UTF-8 have replacement characters.
    pub metadata: BTreeMap<String, String>,
    /// The file of the snapshot; for a set the manifest of the set, then its shards.
    pub files: Vec<DataFile>,
}

/// A file of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// The name of the file, without a folder.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of its contents, in hexadecimal digits.
    pub blake3: String,
    /// The name of its object in the folder `objects` of the destination.
    pub object: String,
    /// The delta that leads to it from a file of an earlier generation, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Delta>,
}

/// The rows by which a file differs from one of an earlier generation. A follower that has the
/// earlier file builds the new one with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// The BLAKE3 hash of the earlier file.
    pub from: String,
    /// The length of the delta in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of its contents.
    pub blake3: String,
    /// The name of its object.
    pub object: String,
}

impl Generation {
    /// Returns the length of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Returns the length of the deltas that lead to its files in bytes.
    pub(crate) fn delta_bytes(&self) -> u64 {
        let deltas = self.files.iter().filter_map(|file| file.delta.as_ref());
        deltas.map(|delta| delta.bytes).fold(0, u64::saturating_add)
    }

    /// Returns the name of the file that programs open.
    pub fn name(&self) -> &str {
        &self.files[0].name
    }

    /// Returns the first rule of the format that its files violate, and what was found.
    pub(crate) fn violation(&self) -> Option<(&'static str, String)> {
        files_violation(&self.files)
    }

    /// Returns whether both are the same generation, not one with its number of a destination that
    /// was created again.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.id == other.id && self.has_contents_of(&other.files)
    }

    /// Returns whether both have the same files with the same contents.
    pub(crate) fn has_contents_of(&self, files: &[DataFile]) -> bool {
        let same = |(a, b): (&DataFile, &DataFile)| a.name == b.name && a.blake3 == b.blake3;
        self.files.len() == files.len() && self.files.iter().zip(files).all(same)
    }
}

impl Manifest {
    /// Returns the generation that followers fetch.
    ///
    /// # Panics
    /// If the program has changed `current` to a number that is not listed.
    pub fn current(&self) -> &Generation {
        self.generation(self.current).expect("decoding checks that it is listed")
    }

    /// Returns a generation by its number.
    pub fn generation(&self, id: u64) -> Option<&Generation> {
        self.generations.iter().find(|generation| generation.id == id)
    }

    /// Returns the files of all generations that have these contents.
    pub(crate) fn files_with(&self, blake3: &str, bytes: u64) -> impl Iterator<Item = &DataFile> {
        let files = self.generations.iter().flat_map(|generation| &generation.files);
        files.filter(move |file| file.blake3 == blake3 && file.bytes == bytes)
    }

    /// Returns the names of all objects.
    pub(crate) fn objects(&self) -> HashSet<&str> {
        let files = self.generations.iter().flat_map(|generation| &generation.files);
        let deltas = files.clone().filter_map(|file| file.delta.as_ref());
        let deltas = deltas.map(|delta| delta.object.as_str());
        files.map(|file| file.object.as_str()).chain(deltas).collect()
    }

    /// Encodes the manifest as one line, without its end.
    pub(crate) fn encode(&self) -> String {
        serde_json::to_string(self).expect("numbers, texts and lists")
    }

    /// Decodes and validates a manifest. `place` is its address, for errors.
    pub(crate) fn decode(line: &str, place: &str) -> Result<Self> {
        let unexpected = |expected: &str, found: String| Error::Manifest {
            manifest: place.to_owned(),
            expected: expected.to_owned(),
            found,
        };
        let invalid = |e: serde_json::Error| unexpected("a manifest of generations", e.to_string());
        let version: Version = serde_json::from_str(line).map_err(invalid)?;
        if version.format != FORMAT {
            let expected = format!("format {FORMAT}");
            return Err(unexpected(&expected, format!("format {}", version.format)));
        }
        let manifest: Self = serde_json::from_str(line).map_err(invalid)?;
        manifest.check(place)?;
        Ok(manifest)
    }

    /// Fails if the manifest contradicts the format.
    pub(crate) fn check(&self, place: &str) -> Result<()> {
        match self.violation() {
            Some((expected, found)) => Err(Error::Manifest {
                manifest: place.to_owned(),
                expected: expected.to_owned(),
                found,
            }),
            None => Ok(()),
        }
    }

    /// Returns the first rule of the format that does not hold, and what was found.
    fn violation(&self) -> Option<(&'static str, String)> {
        let ids = self.generations.iter().map(|generation| generation.id);
        for number in ids.chain([self.serial]) {
            if !(1..=MAX_NUMBER).contains(&number) {
                return Some(("numbers from 1 to 2^53 - 1", number.to_string()));
            }
        }
        if let Some([a, b]) = self.generations.array_windows().find(|[a, b]| a.id >= b.id) {
            return Some(("generations in ascending order", format!("{} before {}", a.id, b.id)));
        }
        if let Some(last) = self.generations.last().filter(|last| last.id > self.serial) {
            let found = format!("generation {} and serial {}", last.id, self.serial);
            return Some(("generations up to the serial number", found));
        }
        if self.generation(self.current).is_none() {
            let found = format!("generation {}, which is not listed", self.current);
            return Some(("the current generation in the list", found));
        }
        self.generations.iter().find_map(|generation| {
            let (expected, found) = generation.violation()?;
            Some((expected, format!("{found} in generation {}", generation.id)))
        })
    }
}

fn files_violation(files: &[DataFile]) -> Option<(&'static str, String)> {
    if !(1..=MAX_FILES).contains(&files.len()) {
        return Some(("1 to 65,537 files", format!("{} files", files.len())));
    }
    let mut names = HashSet::new();
    for file in files {
        let quoted = || format!("{:?}", file.name);
        if !is_plain_name(&file.name) {
            return Some(("a name of a file without a folder or a leading dot", quoted()));
        }
        if !names.insert(file.name.as_str()) {
            return Some(("each name once", quoted()));
        }
        let delta = file.delta.as_ref();
        for object in [Some(&file.object), delta.map(|delta| &delta.object)].into_iter().flatten() {
            if !is_plain_name(object) {
                return Some(("a name of an object without a folder", format!("{object:?}")));
            }
        }
        let of_delta = delta.map(|delta| [&delta.from, &delta.blake3]);
        for hash in of_delta.into_iter().flatten().chain([&file.blake3]) {
            if !is_hash(hash) {
                let expected = "a BLAKE3 hash of 64 digits in lower case";
                return Some((expected, format!("{hash:?}")));
            }
        }
    }
    let total = files.iter().try_fold(0, |sum: u64, file| sum.checked_add(file.bytes));
    total.is_none().then(|| ("files of at most 2^64 bytes", "more".to_owned()))
}

fn is_hash(text: &str) -> bool {
    let is_upper = |digit: char| digit.is_ascii_uppercase();
    blake3::Hash::from_hex(text).is_ok() && !text.contains(is_upper)
}

/// Returns whether a name is that of a file in its folder, also in the folder of a follower, whose
/// own files begin with a dot.
pub(crate) fn is_plain_name(name: &str) -> bool {
    (1..=MAX_NAME_LEN).contains(&name.len())
        && !name.starts_with('.')
        && !name.contains('/')
        && !name.chars().any(char::is_control)
}

/// Returns a time as text in UTC, such as `2026-11-27T09:30:00Z`.
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Times as text, such as `2026-11-27T09:30:00Z`.
mod timestamps {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::SystemTime;

    pub(super) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::timestamp(*time))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<SystemTime, D::Error> {
        let text = String::deserialize(from)?;
        humantime::parse_rfc3339(&text).map_err(D::Error::custom)
    }
}
