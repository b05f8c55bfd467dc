//! Writing of all sections, from sorted rows, on several threads.

use super::commit::{Committed, Committer, Outcome, Target};
use super::compress::Settings;
use super::emit::{Emitter, Image};
use super::locations::ValueLocations;
use super::options::WriterOptions;
use super::plan::Shape;
use super::progress::{Stage, StageProgress};
use super::publish::NewFile;
use super::rows::Sorted;
use super::scatter::SLICE_BITS;
use super::share::{Role, Shared};
use super::spill::SpillFile;
use super::writeback::Writeback;
use crate::error::Result;
use crate::format::hash::checksum;
use crate::format::header::{AdditionalSection, Header, Section, Shard};
use crate::format::layout::{
    SECTION_ALIGN, VERSION_MINOR, additional, directory, flags, header as header_at, line, record,
};
use crate::format::metadata::MetadataBuilder;
use crate::parallel;
use std::collections::HashSet;

/// Weight of the rows from which the file is synced while it is written. The sync of a smaller one
/// is short.
const MIN_WRITEBACK_WEIGHT: u64 = 64 << 20;

/// The input of the last part of a build: sorted rows and what was derived from them.
pub(super) struct Build<'a> {
    pub(super) options: &'a WriterOptions,
    pub(super) sorted: Sorted,
    pub(super) shape: Shape,
    /// Total weight of the rows.
    pub(super) weight: u64,
    pub(super) shared: Shared,
    pub(super) settings: Settings,
    pub(super) metadata: &'a MetadataBuilder,
    /// The place of the file in a set of shards.
    pub(super) place: Option<Shard>,
    pub(super) blobs: &'a SpillFile,
}

impl Build<'_> {
    /// Writes all sections. Returns the header.
    pub(super) fn write(&self, file: &NewFile, entries: u64, dictionary: &[u8]) -> Result<Header> {
        let sections = Sections::new(self.shape, dictionary.len() as u64);
        file.write_at(dictionary, sections.dictionary.offset)?;
        let write = |writeback: Option<&Writeback>| {
            self.write_partitions(file, (&sections, entries), writeback)
        };
        let written = if file.temporary_path().is_some() && self.weight >= MIN_WRITEBACK_WEIGHT {
            Writeback::during((file.file(), file.path()), |writeback| write(Some(writeback)))
        } else {
            write(None)
        };
        let Committed { data_len, directory, totals } = written?;
        let data_len = (data_len + record::MAX_SHORT_LEN as u64).next_multiple_of(SECTION_ALIGN);
        file.write_at(&directory, sections.directory.offset)?;
        let data = Section { offset: sections.data_start, len: data_len };
        let additional = self.write_metadata(file, data.end())?;
        let file_len = additional.last().map_or(data.end(), |last| last.section.end());
        let has_dictionary = u32::from(!dictionary.is_empty()) * flags::DICTIONARY;
        let flags = u32::from(totals.shared > 0) * flags::SHARED
            | u32::from(totals.compressed > 0) * flags::ZSTD
            | has_dictionary;
        Ok(Header {
            version_minor: VERSION_MINOR,
            file_len,
            seed: self.options.seed,
            entries: totals.entries,
            partition_bits: self.shape.partition_bits,
            lines_per_partition: self.shape.lines_per_partition,
            max_probe: totals.max_probe,
            flags,
            dictionary: sections.dictionary,
            directory: sections.directory,
            index: sections.index,
            data,
            dictionary_hash: checksum(dictionary),
            directory_hash: checksum(&directory),
            key_bytes: totals.key_bytes,
            value_bytes: totals.value_bytes,
            stored_value_bytes: totals.stored_value_bytes,
            shared_entries: totals.shared,
            compressed_entries: totals.compressed,
            entries_by_type: totals.by_type,
            shard: self.place,
            additional,
        })
    }

    /// Writes the index and the data.
    fn write_partitions(
        &self,
        file: &NewFile,
        (sections, entries): (&Sections, u64),
        writeback: Option<&Writeback>,
    ) -> Result<Committed> {
        let committer = Committer::new(
            Target {
                file: file.file(),
                path: file.path(),
                index: sections.index,
                data_start: sections.data_start,
                blobs: self.blobs,
                buffers: self.sorted.buffers(),
                writeback,
            },
            ValueLocations::new(self.shared.len(), self.options.memory / 4, file.folder())?,
        );
        let progress = self.options.reporter.start(Stage::Writing, entries);
        // A unit is the smallest range of hashes that consists of whole partitions and whole
        // slices.
        let bits = self.shape.partition_bits.min(SLICE_BITS);
        let units = 0..1_u64 << bits;
        let start = || (None, Image::default(), Vec::new());
        parallel::map_with(self.threads(bits), units, start, |(emitter, image, roles), unit| {
            let guard = FailOnDrop(&committer);
            let emitter = match emitter {
                Some(emitter) => emitter,
                none => none.insert(self.emitter()?),
            };
            self.write_unit(&committer, (bits, unit), (emitter, image, roles), &progress)?;
            std::mem::forget(guard);
            Ok(())
        })?;
        Ok(committer.finish())
    }

    /// Writes the metadata section, if there is metadata, at an offset.
    fn write_metadata(&self, file: &NewFile, offset: u64) -> Result<Vec<AdditionalSection>> {
        let bytes = self.metadata.to_bytes();
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        file.write_at(&bytes, offset)?;
        Ok(vec![AdditionalSection {
            kind: additional::METADATA,
            is_required: false,
            section: Section { offset, len: bytes.len() as u64 },
            hash: checksum(&bytes),
        }])
    }

    /// Returns the number of threads that the memory budget suffices for. Each thread holds the
    /// rows of a unit and its encoded partitions.
    fn threads(&self, bits: u32) -> usize {
        let rows = (self.weight >> bits).max(1 << 20) as usize;
        self.options.threads.min(self.options.memory / (4 * rows)).max(1)
    }

    /// Returns an encoder of partitions for one thread.
    fn emitter(&self) -> Result<Emitter<'_>> {
        let compressor = self.settings.compressor(self.blobs)?;
        let keep_frames = self.sorted.buffers().is_none();
        Ok(Emitter::new(self.shape, compressor, self.blobs, keep_frames))
    }

    /// Encodes and writes the partitions of a unit.
    fn write_unit(
        &self,
        committer: &Committer<'_>,
        (bits, unit): (u32, u64),
        (emitter, image, roles): (&mut Emitter<'_>, &mut Image, &mut Vec<Role>),
        progress: &StageProgress<'_>,
    ) -> Result<()> {
        emitter.forget_rows();
        let slices_each = 1 << (SLICE_BITS - bits);
        let first = unit as usize * slices_each;
        let slice = self.sorted.slices(first..first + slices_each)?;
        let partition_bits = self.shape.partition_bits;
        self.shared.roles(&slice.refs, roles)?;
        let (mut rest, mut rest_roles) = (&slice.refs[..], &roles[..]);
        let partitions_each = 1 << (partition_bits - bits);
        for partition in unit * partitions_each..(unit + 1) * partitions_each {
            let partition_of = |hash: u64| (hash >> 1) >> (63 - partition_bits);
            let len = rest.partition_point(|row| partition_of(row.hash) <= partition);
            let refs = rest.split_off(..len).unwrap_or_default();
            let roles = rest_roles.split_off(..len.min(rest_roles.len())).unwrap_or_default();
            let mut unshared = HashSet::new();
            loop {
                emitter.write(image, slice.buffers(), (refs, roles), &unshared)?;
                match committer.commit(partition, image, slice.buffers())? {
                    Outcome::Done => break,
                    Outcome::HashCollisions(rows) => unshared.extend(rows),
                }
            }
            progress.advance(len as u64);
        }
        Ok(())
    }
}

/// A guard that fails the build when it is dropped, so that no thread waits for partitions of a
/// thread that ended early. Forgotten on success.
struct FailOnDrop<'a>(&'a Committer<'a>);

impl Drop for FailOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}

/// The sections of the file. Only the length of the data is not known before it is written.
struct Sections {
    dictionary: Section,
    directory: Section,
    index: Section,
    data_start: u64,
}

impl Sections {
    fn new(shape: Shape, dictionary_len: u64) -> Self {
        let mut next = header_at::LEN as u64;
        let mut section = |len: u64| {
            let offset = next;
            next = (offset + len).next_multiple_of(SECTION_ALIGN);
            Section { offset, len }
        };
        let partitions = 1 << shape.partition_bits;
        let lines = partitions * u64::from(shape.lines_per_partition);
        let dictionary = section(dictionary_len);
        let directory = section(partitions * directory::ENTRY_LEN as u64);
        let index = section(lines * line::LEN as u64);
        Self { dictionary, directory, index, data_start: section(0).offset }
    }
}
