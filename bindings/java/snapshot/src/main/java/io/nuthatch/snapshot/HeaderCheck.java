package io.nuthatch.snapshot;

import io.nuthatch.snapshot.Layout.Additional;
import io.nuthatch.snapshot.hash.Xxh3;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;

/** The checks of a header, in the order that {@code docs/formats/snapshot.md} determines. */
final class HeaderCheck {

  private final byte[] bytes;
  private final Fields fields;
  private final long fileLength;

  private HeaderCheck(byte[] bytes, long fileLength, Path path) {
    this.bytes = bytes;
    this.fields = new Fields(bytes, path);
    this.fileLength = fileLength;
  }

  /**
   * Checks and decodes a header.
   *
   * @param bytes the first bytes of the file: 512, or all if it has fewer
   * @param fileLength length of the file
   * @param path the file, for errors
   */
  static Header read(byte[] bytes, long fileLength, Path path) {
    return new HeaderCheck(bytes, fileLength, path).read();
  }

  private Header read() {
    checkMagic();
    fields.checkVersion();
    fields.checkHash(Layout.Header.HASH, "the header", Xxh3.hash(bytes, Layout.Header.HASH, 0));
    checkFeatures();
    checkRequiredSections();
    fields.checkEqual(
        Layout.Header.HEADER_LEN,
        "the header length",
        Layout.Header.LENGTH,
        fields.u32(Layout.Header.HEADER_LEN));
    fields.checkEqual(
        Layout.Header.FILE_LEN, "the file length", fields.u64(Layout.Header.FILE_LEN), fileLength);
    fields.checkRange(Layout.Header.FILE_LEN, "a file length", 0, Layout.MAX_FILE, fileLength);
    var header = new Header(fields.bytes);
    checkGeometry(header);
    checkSections(header);
    checkAdditionalSections(header);
    checkCounts(header);
    fields.checkRange(
        Layout.Header.SHARDS, "shards", 0, Layout.MAX_SHARDS, fields.u32(Layout.Header.SHARDS));
    fields.checkRange(
        Layout.Header.SHARD,
        "a number of a shard",
        0,
        Math.max(header.shards - 1, 0),
        fields.u32(Layout.Header.SHARD));
    fields.checkReserved(Layout.Header.RESERVED, Layout.Header.HASH);
    return header;
  }

  private void checkMagic() {
    var magic = Arrays.copyOf(bytes, Math.min(bytes.length, 8));
    if (magic.length < 8 || fields.u64(0) != Layout.MAGIC) {
      throw SnapshotException.notASnapshot(
          fields.path, "the magic 894e55540d0a1a0a", HexFormat.of().formatHex(magic));
    }
    fields.check(
        bytes.length == Layout.Header.LENGTH,
        bytes.length,
        "a header of " + Layout.Header.LENGTH + " bytes",
        bytes.length);
  }

  /** Rejects what a later version adds, and compression without a library for it. */
  private void checkFeatures() {
    long flags = fields.u32(Layout.Header.FLAGS);
    if (flags > 7) {
      throw unsupported(Layout.Header.FLAGS, "flags 1, 2 and 4 only", "flags " + flags);
    }
    if ((flags & (Layout.FLAG_COMPRESSED | Layout.FLAG_DICTIONARY)) != 0 && !Zstd.isAvailable()) {
      throw unsupported(Layout.Header.FLAGS, Zstd.EXPECTED, "a file that needs it");
    }
    long kind = fields.u32(Layout.Header.INDEX_KIND);
    if (kind != 0) {
      throw unsupported(Layout.Header.INDEX_KIND, "an index of kind 0 (lines)", "kind " + kind);
    }
    for (int code = ValueType.MAX_CODE + 1; code < 16; code++) {
      int at = Layout.Header.ENTRIES_BY_TYPE + 8 * code;
      if (fields.u64(at) != 0) {
        throw unsupported(at, "types 1 to " + ValueType.MAX_CODE, "values of type " + code);
      }
    }
  }

  private void checkRequiredSections() {
    long count = fields.u32(Layout.Header.ADDITIONAL_COUNT);
    fields.checkRange(
        Layout.Header.ADDITIONAL_COUNT, "additional sections", 0, Layout.MAX_ADDITIONAL, count);
    for (int i = 0; i < count; i++) {
      int entry = Layout.Header.ADDITIONAL + Additional.LENGTH * i;
      long required = fields.u32(entry + Additional.REQUIRED);
      fields.checkRange(entry + Additional.REQUIRED, "a value of required", 0, 1, required);
      long kind = fields.u32(entry);
      if (required == 1 && kind != Additional.METADATA) {
        throw unsupported(entry, "a required section of kind 1 (metadata)", "kind " + kind);
      }
    }
  }

  private void checkGeometry(Header header) {
    fields.checkRange(
        Layout.Header.PARTITION_BITS,
        "partition bits",
        0,
        Layout.MAX_PARTITION_BITS,
        fields.u32(Layout.Header.PARTITION_BITS));
    fields.check(
        header.linesPerPartition >= 1, Layout.Header.LINES_PER_PARTITION, "one line or more", 0);
    fields.checkRange(
        Layout.Header.MAX_PROBE,
        "a probe length",
        0,
        Math.min(Layout.MAX_PROBE, header.linesPerPartition - 1),
        fields.u32(Layout.Header.MAX_PROBE));
  }

  private void checkSections(Header header) {
    int dictionary = header.hasDictionary() ? 1 : 0;
    long directory = (long) Layout.Directory.LENGTH << header.partitionBits;
    // At most 2^60 lines; more than a file can have is no length of a section.
    long lines = header.lines();
    long index = lines > Layout.MAX_FILE ? Long.MAX_VALUE : lines * Layout.Line.LENGTH;
    long minData = Layout.align(Layout.Record.MAX_SHORT, Layout.SECTION_ALIGN);
    int at = Layout.Header.SECTIONS;
    checkSection(
        at,
        Layout.Header.LENGTH,
        header.dictionary,
        dictionary,
        (long) dictionary * Layout.MAX_DICTIONARY);
    checkSection(at + 16, header.dictionary.end(), header.directory, directory, directory);
    checkSection(at + 32, header.directory.end(), header.index, index, index);
    checkSection(at + 48, header.index.end(), header.data, minData, Layout.MAX_FILE);
    long data = header.data.length();
    fields.check(data % Layout.SECTION_ALIGN == 0, at + 56, "a multiple of 64", data);
    fields.check(
        header.data.end() == fileLength || !header.additional.isEmpty(),
        at + 56,
        "data up to the end of the file",
        data);
  }

  private void checkSection(int at, long before, Section section, long min, long max) {
    long offset = Layout.align(before, Layout.SECTION_ALIGN);
    fields.checkEqual(at, "the offset", offset, section.offset());
    long rest = Math.max(fileLength - offset, 0);
    fields.checkRange(at + 8, "bytes up to the end of the file", 0, rest, section.length());
    fields.checkRange(at + 8, "bytes", min, max, section.length());
  }

  private void checkAdditionalSections(Header header) {
    long end = header.data.end();
    long kind = 0;
    for (var additional : header.additional) {
      int entry = additional.entry();
      long next = Integer.toUnsignedLong(additional.kind());
      fields.check(next > kind, entry, "a kind above " + kind, next);
      kind = next;
      boolean isMetadata = kind == Additional.METADATA;
      checkSection(
          entry + Additional.SECTION,
          end,
          additional.section(),
          isMetadata ? 1 : 0,
          isMetadata ? Layout.MAX_METADATA : Layout.MAX_FILE);
      end = additional.section().end();
      boolean isLast = entry + Additional.LENGTH == unusedEntries(header);
      fields.check(
          !isLast || end == fileLength,
          entry + Additional.SECTION_LENGTH,
          "the last section up to the end of the file",
          additional.section().length());
    }
    fields.checkZeros(unusedEntries(header), Layout.Header.RESERVED);
  }

  private static int unusedEntries(Header header) {
    return Layout.Header.ADDITIONAL + Additional.LENGTH * header.additional.size();
  }

  private void checkCounts(Header header) {
    long sum = 0;
    boolean overflows = false;
    for (long count : header.entriesByType) {
      sum += count;
      overflows |= Long.compareUnsigned(sum, count) < 0;
    }
    int at = Layout.Header.ENTRIES_BY_TYPE;
    fields.check(header.entriesByType[0] == 0, at, "no entries of type 0", 1);
    fields.check(!overflows, at, "fewer than 2^64 entries of all types", sum);
    fields.checkEqual(at, "entries of all types", header.entries, sum);
    long slots = header.index.length() / Layout.Line.LENGTH * Layout.Line.SLOTS;
    fields.checkRange(Layout.Header.ENTRIES, "entries", 0, slots, header.entries);
    checkFlag(header, Layout.Header.SHARED_ENTRIES, Layout.FLAG_SHARED, header.sharedEntries);
    checkFlag(
        header, Layout.Header.COMPRESSED_ENTRIES, Layout.FLAG_COMPRESSED, header.compressedEntries);
  }

  private void checkFlag(Header header, int at, int flag, long count) {
    boolean isSet = (header.flags & flag) != 0;
    fields.checkRange(at, "entries", isSet ? 1 : 0, isSet ? header.entries : 0, count);
  }

  private SnapshotException unsupported(int at, String expected, String found) {
    return SnapshotException.unsupported(fields.path, at, expected, found);
  }
}
