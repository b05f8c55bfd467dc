//! The inputs of a snapshot or of a table, in order.

use super::batch_sink::RowPosition;
use super::file::InputFile;
use super::format::Format;
use super::options::Options;
use crate::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files and standard input that are read, one after the other.
#[derive(Debug)]
pub struct Inputs {
    files: Vec<(InputFile, Format)>,
    options: Options,
    total_bytes: Option<u64>,
}

impl Inputs {
    /// Checks that the inputs exist and that the options fit them. The path `-` is standard input.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if a file does not exist, and [`Error::Usage`] if its format is
    /// unknown, if an option does not fit the formats, or if there are more than 65,536 inputs.
    pub fn new(paths: &[PathBuf], options: Options) -> Result<Self, Error> {
        const MAX_INPUTS: usize = 1 << 16;
        if paths.len() > MAX_INPUTS {
            return Err(Error::Usage(format!(
                "expected at most {MAX_INPUTS} inputs, found {}",
                paths.len()
            )));
        }
        let (mut files, mut total_bytes) = (Vec::new(), Some(0));
        for path in paths {
            let file = InputFile::new(path);
            let format = options.format_of(path, &file)?;
            total_bytes = file.len()?.and_then(|len| Some(total_bytes? + len));
            files.push((file, format));
        }
        let formats: Vec<_> = files.iter().map(|(_, format)| *format).collect();
        options.check(&formats)?;
        Ok(Self { files, options, total_bytes })
    }

    /// Returns the name of the input that is the same file as `output`, even if the paths differ.
    /// `None` if there is none.
    pub fn find_same_file(&self, output: &Path) -> Option<&str> {
        let found = output.metadata().ok()?;
        let mut files = self.files.iter().map(|(file, _)| file);
        files.find(|file| file.is_file(found.dev(), found.ino())).map(|file| &file.name[..])
    }

    /// Returns the sum of the lengths of all input files in bytes, before decompression. `None` if
    /// an input is not a regular file.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Returns the place of a row as `file:line`. `position` is the one that the writer reports,
    /// such as that of a duplicate.
    pub fn describe_position(&self, position: u64) -> String {
        let RowPosition { input, line } = RowPosition::unpack(position);
        let name = self.files.get(usize::from(input)).map_or("?", |(file, _)| &file.name);
        format!("{name}:{line}")
    }

    /// Returns the files, with the format of each.
    pub(crate) fn files(&self) -> &[(InputFile, Format)] {
        &self.files
    }

    /// Returns the options of reading.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the name of an input.
    pub(crate) fn name(&self, input: u16) -> &str {
        &self.files[usize::from(input)].0.name
    }
}
