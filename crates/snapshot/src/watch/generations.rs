//! Numbered snapshots side by side, and the file that tells which one is the latest.
//!
//! Generation 42 of the name `dir/users` is `dir/users.42.nut`; `dir/users.latest` holds its number
//! in decimal digits.

use crate::error::{Error, Result};
use crate::header::corrupt;
use crate::writer::NewFile;
use std::path::{Path, PathBuf};

/// All generations of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generations {
    /// The name with its directory, without number or ending.
    name: PathBuf,
}

impl Generations {
    /// The generations of a name such as `dir/users`.
    pub fn of(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into() }
    }

    /// The path of the pointer to the latest generation.
    pub fn pointer(&self) -> PathBuf {
        self.with_suffix("latest")
    }

    /// The path of a generation.
    pub fn path(&self, number: u64) -> PathBuf {
        self.with_suffix(&format!("{number}.nut"))
    }

    /// The number of the latest generation; `None` before the first is published.
    pub fn latest(&self) -> Result<Option<u64>> {
        let pointer = self.pointer();
        let text = match std::fs::read(&pointer) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(&pointer, "read", e)),
        };
        let number = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
        let found = || format!("\"{}\"", text[..text.len().min(40)].escape_ascii());
        number.map(Some).ok_or_else(|| corrupt(&pointer, 0, "a number of a generation", found()))
    }

    /// Makes a generation, which must be there, the latest. Readers move to it.
    pub fn publish(&self, number: u64) -> Result<()> {
        let path = self.path(number);
        std::fs::metadata(&path).map_err(|e| Error::io(&path, "publish", e))?;
        let pointer = NewFile::create(&self.pointer())?;
        let text = format!("{number}\n");
        pointer.publish(text.as_bytes(), text.len() as u64)
    }

    /// The numbers of all generations on the disk, in order.
    pub fn all(&self) -> Result<Vec<u64>> {
        let directory = match self.name.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let io = |e| Error::io(directory, "list", e);
        let prefix = format!("{}.", self.name.file_name().unwrap_or_default().to_string_lossy());
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let number = name.to_str().and_then(|name| {
                name.strip_prefix(&prefix)?.strip_suffix(".nut")?.parse::<u64>().ok()
            });
            numbers.extend(number.filter(|number| self.path(*number).ends_with(&name)));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Removes the oldest generations but for so many before the latest. Readers that have one open
    /// keep it until they move on.
    pub fn prune(&self, keep: usize) -> Result<()> {
        let Some(latest) = self.latest()? else { return Ok(()) };
        let older: Vec<u64> = self.all()?.into_iter().filter(|&number| number < latest).collect();
        for number in &older[..older.len().saturating_sub(keep)] {
            let path = self.path(*number);
            std::fs::remove_file(&path).map_err(|e| Error::io(&path, "remove", e))?;
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
