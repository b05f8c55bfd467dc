package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U64;

import io.nuthatch.snapshot.Layout.Line;

/** Lookups that read every line that can hold a key, and every kind of record. */
final class LineSearch {

  private final SnapshotFile file;
  private final byte[] key;
  private final int length;
  private final long hash;
  private final RecordHead record = new RecordHead();
  private final long firstLine;
  private long line;
  private int slot;

  private LineSearch(SnapshotFile file, byte[] key, int length, long hash) {
    this.file = file;
    this.key = key;
    this.length = length;
    this.hash = hash;
    int bits = file.header.partitionBits;
    long partition = bits == 0 ? 0 : hash >>> 64 - bits;
    firstLine = partition * file.header.linesPerPartition;
    line = Math.unsignedMultiplyHigh(hash, file.lines);
  }

  /** Does the same as {@link SnapshotFile#find}. */
  static boolean find(SnapshotFile file, byte[] key, int length, long hash, ValueView view) {
    var search = new LineSearch(file, key, length, hash);
    boolean isFound = search.run();
    if (isFound) {
      search.record.view(view);
    }
    return isFound;
  }

  /** Returns whether a lookup of a key finds this slot of this line. */
  static boolean leadsTo(SnapshotFile file, byte[] key, long hash, long line, int slot) {
    var search = new LineSearch(file, key, key.length, hash);
    return search.run() && search.line == line && search.slot == slot;
  }

  private boolean run() {
    for (int probe = 0; probe <= file.header.maxProbe; probe++) {
      long at = file.index + line * Line.LENGTH;
      checkShift(file, at);
      if (isIn(at)) {
        return true;
      }
      if (!file.mayContinue(at, hash)) {
        return false;
      }
      line++;
      if (line == firstLine + file.header.linesPerPartition) {
        line = firstLine;
      }
    }
    return false;
  }

  private boolean isIn(long at) {
    long fingerprint = SnapshotFile.fingerprint(hash);
    for (slot = 0; slot < Line.SLOTS; slot++) {
      if (file.fingerprint(at, slot) == fingerprint) {
        record.decode(file, file.recordAt(at, slot));
        if (record.hasKey(key, length)) {
          return true;
        }
      }
    }
    return false;
  }

  /** Checks the unit of the offsets of the line at an offset of the file. */
  static void checkShift(SnapshotFile file, long at) {
    long shift = file.bytes.get(U64, at + Line.SHIFT) & 0xFF;
    if (shift > Layout.MAX_SHIFT) {
      throw file.corrupt(at + Line.SHIFT, "a shift of at most " + Layout.MAX_SHIFT, shift);
    }
  }
}
