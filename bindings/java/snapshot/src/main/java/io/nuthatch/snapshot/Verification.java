package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U16;
import static io.nuthatch.snapshot.Layout.U64;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.nuthatch.snapshot.Layout.Directory;
import io.nuthatch.snapshot.Layout.Line;
import java.util.Arrays;

/** The verification of every byte of a file, in the order of {@code docs/formats/snapshot.md}. */
final class Verification {

  private final SnapshotFile file;
  private final Header header;
  private final RecordHead record = new RecordHead();
  private final LineSearch search = new LineSearch();
  private final ValueView view = new ValueView();

  /** Offset of the end of the last record. */
  private long end;

  // Counts of the entries so far.
  private long entries;
  private long keyBytes;
  private long valueBytes;
  private long storedValueBytes;
  private long sharedEntries;
  private long compressedEntries;
  private final long[] entriesByType = new long[16];

  private Verification(SnapshotFile file) {
    this.file = file;
    this.header = file.header;
  }

  /**
   * Verifies a file.
   *
   * @throws SnapshotException with the code {@code corrupt} for the first contradiction to the
   *     format
   */
  static void run(SnapshotFile file) {
    var verification = new Verification(file);
    verification.checkSections();
    verification.checkDirectory();
    for (long partition = 0; partition < file.header.partitions(); partition++) {
      verification.checkPartition(partition);
    }
    verification.checkCounts();
  }

  private void checkSections() {
    checkZeros(Layout.Header.LENGTH, header.dictionary.offset());
    checkZeros(header.dictionary.end(), header.directory.offset());
    checkZeros(header.directory.end(), header.index.offset());
    checkZeros(header.index.end(), header.data.offset());
    checkHash(
        Layout.Header.DICTIONARY_HASH, "the dictionary", header.dictionaryHash, header.dictionary);
    long before = header.data.end();
    for (var additional : header.additional) {
      checkZeros(before, additional.section().offset());
      file.checkAdditional(additional);
      before = additional.section().end();
    }
    file.metadata();
  }

  private void checkDirectory() {
    checkHash(
        Layout.Header.DIRECTORY_HASH, "the directory", header.directoryHash, header.directory);
    long expected = 0;
    for (long partition = 0; partition < header.partitions(); partition++) {
      long at = directoryEntry(partition);
      long offset = file.bytes.get(U64, at);
      long length = file.bytes.get(U64, at + Directory.DATA_LEN);
      check(offset == expected, at, "data of the partition at " + expected, offset);
      long room = header.data.length() - offset;
      check(
          0 <= length && length <= room,
          at + Directory.DATA_LEN,
          "at most " + room + " bytes of data",
          length);
      expected = Layout.align(offset + length, Layout.SECTION_ALIGN);
      checkZeros(file.data + offset + length, Math.min(file.data + expected, file.dataEnd));
    }
    long length = Layout.align(expected + Layout.Record.MAX_SHORT, Layout.SECTION_ALIGN);
    check(
        header.data.length() == length,
        Layout.Header.SECTIONS + 56,
        header.data.length() + " bytes of data",
        length);
    checkZeros(file.data + expected, file.dataEnd);
  }

  private long directoryEntry(long partition) {
    return header.directory.offset() + Directory.LENGTH * partition;
  }

  private void checkPartition(long partition) {
    long at = directoryEntry(partition);
    long first = header.linesPerPartition * partition;
    var lines =
        new Section(file.index + Line.LENGTH * first, Line.LENGTH * header.linesPerPartition);
    long indexHash = file.bytes.get(U64, at + Directory.INDEX_HASH);
    checkHash(at + Directory.INDEX_HASH, "the index of the partition", indexHash, lines);
    var data =
        new Section(
            file.data + file.bytes.get(U64, at), file.bytes.get(U64, at + Directory.DATA_LEN));
    long dataHash = file.bytes.get(U64, at + Directory.DATA_HASH);
    checkHash(at + Directory.DATA_HASH, "the data of the partition", dataHash, data);
    end = data.offset();
    for (long line = first; line < first + header.linesPerPartition; line++) {
      checkLine(line, data.end());
    }
    checkZeros(end, data.end());
  }

  private void checkLine(long number, long limit) {
    long line = file.index + Line.LENGTH * number;
    LineSearch.checkShift(file, line);
    int used = 0;
    while (used < Line.SLOTS && file.fingerprint(line, used) != 0) {
      used++;
    }
    for (int slot = used; slot < Line.SLOTS; slot++) {
      check(file.fingerprint(line, slot) == 0, line, "slots in use before free slots", "a gap");
    }
    for (int slot = used; slot < Line.SLOTS; slot++) {
      long offset = file.bytes.get(U16, line + Line.OFFSETS + 2 * slot);
      check(offset == 0, line + Line.OFFSETS + 2 * used, "offset 0 in free slots", offset);
    }
    for (int slot = 0; slot < used; slot++) {
      checkRecord(number, slot, limit);
    }
  }

  private void checkRecord(long number, int slot, long limit) {
    long line = file.index + Line.LENGTH * number;
    long at = file.recordAt(line, slot);
    check(
        end <= at && at < limit,
        line + Line.OFFSETS + 2 * slot,
        "a record from " + end + " to " + limit,
        at);
    checkZeros(end, at);
    record.decode(file, at);
    check(record.end <= limit, at, "the end of the record by " + limit, record.end);
    end = record.end;
    var key = record.key();
    long hash = file.hash(key, key.length);
    int shard = SnapshotFile.shard(hash, header.shards);
    check(header.shards == 0 || shard == header.shard, at, "a key of shard " + header.shard, shard);
    check(
        search.leadsTo(file, key, hash, number, slot),
        at,
        "a key that lookups find here",
        "a key that they find elsewhere or not at all");
    checkValue();
  }

  private void checkValue() {
    record.view(view);
    long length = view.check();
    entries++;
    keyBytes += record.keyLength;
    valueBytes += length;
    storedValueBytes += record.isShared() ? 0 : record.valueLength;
    sharedEntries += record.isShared() ? 1 : 0;
    compressedEntries += record.isCompressed() ? 1 : 0;
    entriesByType[record.type().code()]++;
    if (!record.isShared()) {
      checkZeros(record.keyEnd(), record.valueAt);
    }
  }

  private void checkCounts() {
    checkCount(Layout.Header.ENTRIES, header.entries, entries);
    checkCount(Layout.Header.KEY_BYTES, header.keyBytes, keyBytes);
    checkCount(Layout.Header.VALUE_BYTES, header.valueBytes, valueBytes);
    checkCount(Layout.Header.STORED_VALUE_BYTES, header.storedValueBytes, storedValueBytes);
    checkCount(Layout.Header.SHARED_ENTRIES, header.sharedEntries, sharedEntries);
    checkCount(Layout.Header.COMPRESSED_ENTRIES, header.compressedEntries, compressedEntries);
    check(
        Arrays.equals(header.entriesByType, entriesByType),
        Layout.Header.ENTRIES_BY_TYPE,
        "entries by type " + Arrays.toString(header.entriesByType),
        Arrays.toString(entriesByType));
  }

  private void checkCount(int at, long stored, long found) {
    check(stored == found, at, "the count " + Long.toUnsignedString(stored), found);
  }

  private void checkHash(long at, String what, long stored, Section section) {
    file.checkHash(at, what, stored, section);
  }

  private void checkZeros(long from, long to) {
    long at = from;
    while (to - at >= 8 && file.bytes.get(U64, at) == 0) {
      at += 8;
    }
    for (; at < to; at++) {
      byte found = file.bytes.get(JAVA_BYTE, at);
      check(found == 0, at, "a zero", found & 0xFF);
    }
  }

  private void check(boolean holds, long at, String expected, Object found) {
    if (!holds) {
      throw file.corrupt(at, expected, found);
    }
  }
}
