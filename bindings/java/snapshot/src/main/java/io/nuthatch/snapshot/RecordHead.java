package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U16;
import static io.nuthatch.snapshot.Layout.U32;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.nuthatch.snapshot.Layout.Record;
import java.lang.foreign.MemorySegment;

/** A record of any kind, decoded and checked. Offsets count from the start of the file. */
final class RecordHead {

  private SnapshotFile file;
  private int tag;
  private long at;
  long keyAt;
  int keyLength;
  long valueAt;
  long valueLength;

  /** Offset of the end of the record. */
  long end;

  /**
   * Decodes the record at an offset.
   *
   * @throws SnapshotException with the code {@code corrupt} if it is not within the data section or
   *     contradicts the format
   */
  void decode(SnapshotFile from, long offset) {
    file = from;
    at = offset;
    long room = file.dataEnd - at;
    check(at >= file.data && room >= Record.SHORT_HEAD, at, "a record within the data", at);
    tag = file.bytes.get(JAVA_BYTE, at) & 0xFF;
    keyAt = at + Record.SHORT_HEAD;
    keyLength = file.bytes.get(JAVA_BYTE, at + 1) & 0xFF;
    valueLength = file.bytes.get(JAVA_BYTE, at + 2) & 0xFF;
    if ((tag & Record.LONG) != 0) {
      check(room >= Record.LONG_HEAD, at, "a long head within the data", at);
      keyAt = at + Record.LONG_HEAD;
      keyLength = file.bytes.get(U16, at + 1) & 0xFFFF;
      long low = file.bytes.get(U32, at + 3) & 0xFFFFFFFFL;
      valueLength = low | (file.bytes.get(JAVA_BYTE, at + 7) & 0xFFL) << 32;
      check(valueLength <= Layout.MAX_VALUE, at + 3, "a value of at most 4 GiB", valueLength);
    }
    check(tag < Record.RESERVED && type() != null, at, "a tag of a known type", tag);
    decodeValue();
  }

  private void decodeValue() {
    long dataEnd = file.dataEnd;
    long keyEnd = keyEnd();
    check(keyEnd <= dataEnd, at, "a key within the data", keyLength);
    int alignment = isCompressed() ? 1 : type().alignment();
    valueAt = keyEnd;
    if (isShared()) {
      end = keyEnd + Record.REFERENCE;
      check(end <= dataEnd, keyEnd, "a reference within the data", keyEnd);
      long high = file.bytes.get(U16, keyEnd + 4) & 0xFFFFL;
      valueAt = file.data + (file.bytes.get(U32, keyEnd) & 0xFFFFFFFFL | high << 32);
    } else if ((tag & Record.LONG) != 0) {
      valueAt = Layout.align(keyEnd, alignment);
    }
    check(valueAt % alignment == 0, at, "an aligned value", valueAt);
    long valueEnd = valueAt + valueLength;
    check(valueEnd <= dataEnd, isShared() ? keyEnd : at, "a value within the data", valueEnd);
    end = isShared() ? end : valueEnd;
  }

  private void check(boolean holds, long offset, String expected, long found) {
    if (!holds) {
      throw file.corrupt(offset, expected, found);
    }
  }

  ValueType type() {
    return ValueType.of(tag & Record.TYPE_MASK);
  }

  boolean isShared() {
    return (tag & Record.SHARED) != 0;
  }

  boolean isCompressed() {
    return (tag & Record.COMPRESSED) != 0;
  }

  long keyEnd() {
    return keyAt + keyLength;
  }

  boolean hasKey(byte[] key, int length) {
    return keyLength == length && Keys.isEqual(key, length, file.bytes, keyAt);
  }

  byte[] key() {
    var key = new byte[keyLength];
    MemorySegment.copy(file.bytes, JAVA_BYTE, keyAt, key, 0, keyLength);
    return key;
  }

  /** Sets a view to the value of the record. */
  void view(ValueView view) {
    int code = tag & (Record.TYPE_MASK | Record.COMPRESSED);
    view.set(file, code, valueAt, valueLength);
  }
}
