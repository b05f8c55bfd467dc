package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U64;

import io.nuthatch.snapshot.Layout.Line;

/**
 * Lookups that read every line that can hold a key, and every kind of record. An object is reused
 * for any number of lookups by one thread, so that they allocate nothing.
 */
final class LineSearch {

  private SnapshotFile file;
  private byte[] key;
  private int length;
  private long hash;

  /** The record of the last lookup that found its key, and its place. */
  private final RecordHead record = new RecordHead();

  private long line;
  private int slot;

  /** Does the same as {@link SnapshotFile#find}. */
  boolean find(SnapshotFile in, byte[] wanted, int bytes, long keyHash, ValueView view) {
    boolean isFound = find(in, wanted, bytes, keyHash);
    if (isFound) {
      record.view(view);
    }
    return isFound;
  }

  /** Returns whether a lookup of a key finds this slot of this line. */
  boolean leadsTo(SnapshotFile in, byte[] wanted, long keyHash, long toLine, int toSlot) {
    return find(in, wanted, wanted.length, keyHash) && line == toLine && slot == toSlot;
  }

  private boolean find(SnapshotFile in, byte[] wanted, int bytes, long keyHash) {
    file = in;
    key = wanted;
    length = bytes;
    hash = keyHash;
    try {
      return readLines();
    } finally {
      key = null; // The key belongs to the caller.
    }
  }

  private boolean readLines() {
    int bits = file.header.partitionBits;
    long partition = bits == 0 ? 0 : hash >>> 64 - bits;
    long firstLine = partition * file.header.linesPerPartition;
    line = Math.unsignedMultiplyHigh(hash, file.lines);
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
