package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U16;
import static io.nuthatch.snapshot.Layout.U64;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.nuthatch.snapshot.hash.Xxh3;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Map;

/**
 * One open file: a snapshot, or a shard of one. Offsets count from the start of the file.
 *
 * <p>A lookup first tries the home line of its key, and the first record there whose fingerprint
 * matches. {@link LineSearch} reads every line that can hold the key and every kind of record, and
 * names damage.
 */
final class SnapshotFile {

  /** The result of a lookup for a key that does not exist. */
  private static final long ABSENT = -1;

  /** The result of a lookup that {@link LineSearch} decides. */
  private static final long UNDECIDED = -2;

  private static final long LANES = 0x0001000100010001L;
  private static final long LANE_HIGH_BITS = 0x8000800080008000L;

  final Path path;
  final MemorySegment bytes;
  final Header header;

  /** Decompresses values. */
  final Zstd zstd;

  /** Offset of the index. */
  final long index;

  final long lines;

  /** Offset of the data section. */
  final long data;

  /** Offset of the end of the data section. */
  final long dataEnd;

  /** Maximum offset in the data section of a record that can be read without further checks. */
  private final long lastWindow;

  private SnapshotFile(Path path, MemorySegment bytes, Header header, Zstd zstd) {
    this.path = path;
    this.bytes = bytes;
    this.header = header;
    this.zstd = zstd;
    index = header.index.offset();
    lines = header.lines();
    data = header.data.offset();
    dataEnd = header.data.end();
    lastWindow = header.data.length() - Layout.Record.MAX_SHORT;
  }

  /** Checks the header and the dictionary of a file. */
  static SnapshotFile of(Path path, MemorySegment bytes) {
    int length = (int) Math.min(bytes.byteSize(), Layout.Header.LENGTH);
    var start = new byte[length];
    MemorySegment.copy(bytes, JAVA_BYTE, 0, start, 0, length);
    var header = HeaderCheck.read(start, bytes.byteSize(), path);
    if (!header.hasDictionary()) {
      return new SnapshotFile(path, bytes, header, Zstd.withoutDictionary());
    }
    var plain = new SnapshotFile(path, bytes, header, Zstd.withoutDictionary());
    var section = header.dictionary;
    plain.checkHash(
        Layout.Header.DICTIONARY_HASH, "the dictionary", header.dictionaryHash, section);
    var zstd = Zstd.withDictionary(plain.copy(section), path, section);
    return new SnapshotFile(path, bytes, header, zstd);
  }

  long hash(byte[] key, int length) {
    return Xxh3.hash(key, length, header.seed);
  }

  /** Finds the value of a key. Returns whether the key exists. */
  boolean find(byte[] key, int length, long hash, ValueView view) {
    return read(locate(key, length, hash), key, length, hash, view);
  }

  /** Reads the value of a key from a located record. Searches for the key if it was not located. */
  boolean read(long at, byte[] key, int length, long hash, ValueView view) {
    if (at >= 0) {
      long head = bytes.get(U64, at);
      long value = at + Layout.Record.SHORT_HEAD + length;
      view.set(this, (int) head & Layout.Record.TYPE_MASK, value, head >>> 16 & 0xFF);
      return true;
    }
    return at == UNDECIDED && view.search().find(this, key, length, hash, view);
  }

  /**
   * Returns the string of a key if its record is the first one that matches in its home line, and a
   * short one; otherwise {@code null}, and {@link #find} decides.
   */
  String readString(byte[] key, int length, long hash) {
    long at = locate(key, length, hash);
    if (at < 0) {
      return null;
    }
    long head = bytes.get(U64, at);
    if ((head & Layout.Record.TYPE_MASK) != ValueType.STRING_CODE) {
      return null;
    }
    return Text.of(bytes, at + Layout.Record.SHORT_HEAD + length, (int) (head >>> 16) & 0xFF);
  }

  /**
   * Returns the offset of the record of a key if it is short, stores its value, and is the first
   * one that matches in the home line; {@link #ABSENT} or {@link #UNDECIDED} otherwise.
   */
  private long locate(byte[] key, int length, long hash) {
    long line = homeLine(hash);
    long matches = matches(line, hash);
    if (matches == 0) {
      return mayContinue(line, hash) ? UNDECIDED : ABSENT;
    }
    return locateAt(recordAt(line, slot(matches)), key, length);
  }

  /** Returns an offset if a short record that stores the value of a key begins there. */
  long locateAt(long at, byte[] key, int length) {
    if (isWindow(at)) {
      long head = bytes.get(U64, at);
      // The tag without the bits of the type, and the length of the key.
      if ((head & 0xFFF0) == (long) length << 8
          && (head - 1 & Layout.Record.TYPE_MASK) < ValueType.MAX_CODE
          && Keys.isEqual(key, length, bytes, at + Layout.Record.SHORT_HEAD)) {
        return at;
      }
    }
    return UNDECIDED;
  }

  /** Returns whether a short record at an offset is within the data section. */
  boolean isWindow(long at) {
    return Long.compareUnsigned(at - data, lastWindow) <= 0;
  }

  /** Returns the offset of the home line of a key. */
  long homeLine(long hash) {
    return index + (Math.unsignedMultiplyHigh(hash, lines) << 6);
  }

  /**
   * Returns the slots of a line that have the fingerprint of a hash: bit {@code 16 * i + j} for
   * slot {@code 4 * j + i}, so that no branch depends on where the slot is. The lowest bit is
   * exact; higher bits can be those of other slots.
   */
  long matches(long line, long hash) {
    long fingerprints = fingerprint(hash) * LANES;
    // Two slots and four other bytes, which cannot equal a fingerprint after the mask.
    long last = bytes.get(U64, line + 24) & 0xFFFFFFFFL;
    return zeros(bytes.get(U64, line) ^ fingerprints) >>> 15
        | zeros(bytes.get(U64, line + 8) ^ fingerprints) >>> 14
        | zeros(bytes.get(U64, line + 16) ^ fingerprints) >>> 13
        | zeros(last ^ fingerprints) >>> 12;
  }

  /**
   * Returns the highest bit of each 16 bits that are zero. A borrow of such bits can also set the
   * bit of the 16 bits above them.
   */
  private static long zeros(long lanes) {
    return lanes - LANES & ~lanes & LANE_HIGH_BITS;
  }

  static long fingerprint(long hash) {
    return hash & 0x7FFF | 0x8000;
  }

  /** Returns the fingerprint of a slot, or 0 for a free slot. */
  long fingerprint(long line, int slot) {
    return bytes.get(U16, line + 2 * slot) & 0xFFFFL;
  }

  /** Returns the slot of the lowest bit of some {@link #matches}. */
  static int slot(long matches) {
    int bit = Long.numberOfTrailingZeros(matches);
    return bit >> 4 | (bit & 3) << 2;
  }

  /** Returns the offset of the record of a slot, which may be outside the file. */
  long recordAt(long line, int slot) {
    long tail = bytes.get(U64, line + Layout.Line.SHIFT);
    long offset = bytes.get(U16, line + Layout.Line.OFFSETS + 2 * slot) & 0xFFFFL;
    return data + (tail >>> 16) + (offset << tail);
  }

  /** Returns whether a key that is not in a line may be in a later one. */
  boolean mayContinue(long line, long hash) {
    return bytes.get(JAVA_BYTE, line + Layout.Line.SHIFT + 1) >>> (hash >>> 16 & 7) << 31 != 0;
  }

  /** Returns the number of the shard of a key in a set of {@code shards} shards. */
  static int shard(long hash, int shards) {
    return (int) ((hash >>> 19 & 0xFFFF) * shards >>> 16);
  }

  /** Decodes the metadata. */
  Map<String, byte[]> metadata() {
    for (var additional : header.additional) {
      if (additional.kind() == Layout.Additional.METADATA) {
        checkAdditional(additional);
        var section = additional.section();
        return Metadata.decode(copy(section), path, section.offset());
      }
    }
    return Map.of();
  }

  /** Checks the checksum of an additional section. */
  void checkAdditional(Section.Additional additional) {
    int at = additional.entry() + Layout.Additional.CHECKSUM;
    checkHash(at, "the additional section", additional.checksum(), additional.section());
  }

  /** Compares the checksum of a section with the one that is stored at an offset. */
  void checkHash(long at, String what, long stored, Section section) {
    long found = Xxh3.hash(bytes, section.offset(), section.length(), 0);
    if (found != stored) {
      throw Fields.checksum(path, at, what, stored, found);
    }
  }

  private byte[] copy(Section section) {
    var copy = new byte[(int) section.length()];
    MemorySegment.copy(bytes, JAVA_BYTE, section.offset(), copy, 0, copy.length);
    return copy;
  }

  SnapshotException corrupt(long offset, Object expected, Object found) {
    return SnapshotException.corrupt(path, offset, expected, found);
  }
}
