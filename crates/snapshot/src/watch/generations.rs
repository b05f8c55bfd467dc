//! Generations: numbered snapshot files in one folder, and a pointer file to the latest.
//!
//! Generation 42 of the name `dir/users` is the file `dir/users.42.nut`. The pointer file is
//! `dir/users.latest`; it holds the number of the latest generation in decimal digits.

use crate::error::{Error, Result};
use crate::writer::{NewFile, remove};
use std::path::{Path, PathBuf};

/// The generations of one name: numbered snapshot files, and a pointer file to the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generations {
    /// The path without number and extension.
    name: PathBuf,
}

impl Generations {
    /// Returns the generations of a name such as `dir/users`.
    pub fn of(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into() }
    }

    /// Returns the path of the pointer file.
    pub fn pointer(&self) -> PathBuf {
        self.with_suffix("latest")
    }

    /// Returns the path of a generation.
    pub fn path(&self, number: u64) -> PathBuf {
        self.with_suffix(&format!("{number}.nut"))
    }

    /// Returns the number of the latest generation, or `None` if no generation is published.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the pointer file cannot be read, or [`Error::Corrupt`] if it does
    /// not hold a number.
    pub fn latest(&self) -> Result<Option<u64>> {
        let pointer = self.pointer();
        let text = match std::fs::read(&pointer) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(&pointer, "read", e)),
        };
        let number = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
        let found = || format!("\"{}\"", text[..text.len().min(40)].escape_ascii());
        number
            .map(Some)
            .ok_or_else(|| Error::corrupt(&pointer, 0, "a number of a generation", found()))
    }

    /// Publishes a generation, whose file must exist: replaces the pointer file, so that it points
    /// to this generation. Watches then switch their readers to it.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the generation's file does not exist or the pointer file cannot be
    /// written, or [`Error::NotDurable`] if the pointer file is replaced, but the folder cannot be
    /// synced.
    pub fn publish(&self, number: u64) -> Result<()> {
        let path = self.path(number);
        std::fs::metadata(&path).map_err(|e| Error::io(&path, "publish", e))?;
        let pointer = NewFile::create(&self.pointer())?;
        let text = format!("{number}\n");
        pointer.publish(text.as_bytes(), text.len() as u64)
    }

    /// Returns the numbers of all generations in the folder, published or not, in ascending order.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the folder cannot be listed.
    pub fn all(&self) -> Result<Vec<u64>> {
        let folder = match self.name.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let io = |e| Error::io(folder, "list", e);
        let prefix = format!("{}.", self.name.file_name().unwrap_or_default().to_string_lossy());
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let number = name.to_str().and_then(|name| {
                name.strip_prefix(&prefix)?.strip_suffix(".nut")?.parse::<u64>().ok()
            });
            numbers.extend(number.filter(|number| self.path(*number).ends_with(&name)));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Removes old generations: keeps the latest, those above its number, and the `keep`
    /// generations before it. Of a generation that is a set, removes the manifest, and the shards
    /// that no other manifest in the folder refers to. Readers that have a removed generation open
    /// can read it until they switch. Does nothing if no generation is published. Do not call it
    /// while a set is built in the folder.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the folder cannot be listed or a file cannot be removed, or an
    /// error of [`latest`](Self::latest).
    pub fn prune(&self, keep: usize) -> Result<()> {
        let Some(latest) = self.latest()? else { return Ok(()) };
        let older: Vec<u64> = self.all()?.into_iter().filter(|&number| number < latest).collect();
        for number in &older[..older.len().saturating_sub(keep)] {
            let path = self.path(*number);
            remove(&path).map_err(|e| Error::io(&path, "remove", e))?;
        }
        Ok(())
    }

    fn with_suffix(&self, suffix: &str) -> PathBuf {
        let mut path = self.name.clone().into_os_string();
        path.push(".");
        path.push(suffix);
        path.into()
    }
}
