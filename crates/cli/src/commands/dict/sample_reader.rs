//! Reads samples from lines, files and rows.

use crate::outcome::Failure;
use nuthatch_cli::output::json_value;
use nuthatch_compress::{MAX_LEN_WITH_DICTIONARY, Reservoir};
use nuthatch_import::{Inputs, Options, RowSink};
use nuthatch_snapshot::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of folders within each other.
const MAX_DEPTH: usize = 64;

/// The samples that were read, and what was left out.
pub(super) struct Samples {
    reservoir: Reservoir,
    /// The number of values that were read, without empty ones.
    pub(super) read: u64,
    /// The number of values that are too long for a dictionary.
    pub(super) too_long: u64,
    buffer: Vec<u8>,
}

impl Samples {
    pub(super) fn new(reservoir: Reservoir) -> Self {
        Self { reservoir, read: 0, too_long: 0, buffer: Vec::new() }
    }

    fn add(&mut self, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        self.read += 1;
        if value.len() > MAX_LEN_WITH_DICTIONARY {
            self.too_long += 1;
        } else {
            self.reservoir.offer(value);
        }
    }

    /// Returns the samples.
    pub(super) fn take(&mut self) -> Vec<Box<[u8]>> {
        self.reservoir.take()
    }
}

impl RowSink for Samples {
    fn row(
        &mut self,
        _line: u64,
        _key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        match value {
            Value::String(text) => self.add(text.as_bytes()),
            Value::Bytes(bytes) => self.add(bytes),
            other => {
                let mut buffer = std::mem::take(&mut self.buffer);
                buffer.clear();
                json_value(&other, &mut buffer);
                self.add(&buffer);
                self.buffer = buffer;
            }
        }
        Ok(())
    }
}

/// Reads the values of rows.
pub(super) fn read_rows(
    path: &Path,
    options: Options,
    samples: &mut Samples,
    report: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let inputs = Inputs::new(&[path.to_owned()], options)?;
    inputs.for_each(samples, |samples, _bytes| {
        report(samples.read);
        Ok::<_, Failure>(())
    })
}

/// Reads each line that is not empty.
pub(super) fn read_lines(
    path: &Path,
    samples: &mut Samples,
    report: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return read_lines_of(Path::new("<stdin>"), io::stdin().lock(), samples, report);
    }
    let file = File::open(path).map_err(|error| failed(path, "open", &error))?;
    read_lines_of(path, BufReader::with_capacity(1 << 16, file), samples, report)
}

fn read_lines_of(
    path: &Path,
    mut reader: impl BufRead,
    samples: &mut Samples,
    report: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = MAX_LEN_WITH_DICTIONARY as u64 + 2;
        let mut part = reader.by_ref().take(limit);
        let read = part.read_until(b'\n', &mut line).map_err(|e| failed(path, "read", &e))?;
        if read == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            line.pop_if(|byte| *byte == b'\r');
        } else if line.len() as u64 == limit {
            // It is too long. The rest is dropped as it is read.
            reader.skip_until(b'\n').map_err(|error| failed(path, "read", &error))?;
        }
        samples.add(&line);
        if samples.read.is_multiple_of(1024) {
            report(samples.read);
        }
    }
}

/// Returns whether both paths are the same file.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    id(one).is_some_and(|one| Some(one) == id(other))
}

/// Reads a file, or all files of a folder and the folders in it, in the order of their names. Skips
/// the file `output`, which can be a dictionary that an earlier run wrote to the folder.
pub(super) fn read_files(
    path: &Path,
    output: Option<&Path>,
    samples: &mut Samples,
    report: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let mut pending = vec![(path.to_owned(), 0)];
    while let Some((path, depth)) = pending.pop() {
        let found = path.metadata().map_err(|error| failed(&path, "open", &error))?;
        if found.is_dir() {
            if depth == MAX_DEPTH {
                let problem = format!("expected at most {MAX_DEPTH} folders within each other");
                return Err(Failure::Error(format!("{}: {problem}", path.display())));
            }
            let mut entries = entries(&path)?;
            entries.sort_by(|one, other| other.cmp(one));
            pending.extend(entries.into_iter().map(|path| (path, depth + 1)));
        } else if found.is_file() && !output.is_some_and(|output| is_same_file(output, &path)) {
            let mut value = Vec::new();
            let file = File::open(&path).map_err(|error| failed(&path, "open", &error))?;
            let mut file = file.take(MAX_LEN_WITH_DICTIONARY as u64 + 1);
            file.read_to_end(&mut value).map_err(|error| failed(&path, "read", &error))?;
            samples.add(&value);
            report(samples.read);
        }
    }
    Ok(())
}

/// Returns the files and folders of a folder, without symbolic links, which could lead outside or
/// in circles.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut entries = Vec::new();
    for entry in folder.read_dir().map_err(|error| failed(folder, "list", &error))? {
        let entry = entry.map_err(|error| failed(folder, "list", &error))?;
        let kind = entry.file_type().map_err(|error| failed(folder, "list", &error))?;
        if !kind.is_symlink() {
            entries.push(entry.path());
        }
    }
    Ok(entries)
}

fn failed(path: &Path, operation: &str, error: &io::Error) -> Failure {
    Failure::Error(format!("{}: {operation}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> (Vec<usize>, u64) {
        let mut samples = Samples::new(Reservoir::new(1 << 20, 1));
        let read = read_lines_of(Path::new("a"), text, &mut samples, &mut |_| {});
        assert!(read.is_ok());
        (samples.take().iter().map(|sample| sample.len()).collect(), samples.too_long)
    }

    #[test]
    fn lines_are_samples_without_their_ends() {
        assert_eq!(lines(b"a\nbb\r\n\n\r\nccc"), (vec![1, 2, 3], 0));
        assert_eq!(lines(b""), (vec![], 0));
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_as_a_whole() {
        let max = MAX_LEN_WITH_DICTIONARY;
        for (len, expected) in [
            (max, (vec![1, max, 2], 0)),
            (max + 1, (vec![1, 2], 1)),
            (max + 2, (vec![1, 2], 1)),
            (max * 5, (vec![1, 2], 1)),
        ] {
            for end in ["\n", "\r\n"] {
                let text = format!("a{end}{}{end}bb", "x".repeat(len));
                assert_eq!(lines(text.as_bytes()), expected, "{len} {end:?}");
            }
        }
    }
}
