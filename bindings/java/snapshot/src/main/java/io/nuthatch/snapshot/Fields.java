package io.nuthatch.snapshot;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;

/** The fields of a header or manifest, and the checks that both have. */
final class Fields {

  final ByteBuffer bytes;
  final Path path;

  /** Describes the bytes of a file from its start. */
  Fields(byte[] bytes, Path path) {
    this.bytes = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    this.path = path;
  }

  int u16(int at) {
    return bytes.getShort(at) & 0xFFFF;
  }

  long u32(int at) {
    return Integer.toUnsignedLong(bytes.getInt(at));
  }

  long u64(int at) {
    return bytes.getLong(at);
  }

  void checkVersion() {
    int major = u16(Layout.Header.VERSION_MAJOR);
    if (major != Layout.VERSION_MAJOR) {
      var found = "version " + major + "." + u16(Layout.Header.VERSION_MINOR);
      throw SnapshotException.unsupported(
          path, Layout.Header.VERSION_MAJOR, "format version " + Layout.VERSION_MAJOR, found);
    }
  }

  void checkHash(int at, String what, long computed) {
    if (u64(at) != computed) {
      throw checksum(path, at, what, u64(at), computed);
    }
  }

  /** Checks that a field has a value. */
  void checkEqual(int at, String what, long expected, long found) {
    check(expected == found, at, what + " " + Long.toUnsignedString(expected), found);
  }

  /** Checks that an unsigned value is within bounds. */
  void checkRange(int at, String what, long min, long max, long found) {
    boolean holds = Long.compareUnsigned(found, min) >= 0 && Long.compareUnsigned(found, max) <= 0;
    check(holds, at, what + " from " + min + " to " + Long.toUnsignedString(max), found);
  }

  /** Checks that the bytes from one offset to another are zero. */
  void checkZeros(int from, int to) {
    for (int at = from; at < to; at++) {
      check(bytes.get(at) == 0, at, "a zero", bytes.get(at) & 0xFF);
    }
  }

  /** Checks that the reserved bytes are zero, unless the minor version is higher. */
  void checkReserved(int from, int to) {
    if (u16(Layout.Header.VERSION_MINOR) == 0) {
      checkZeros(from, to);
    }
  }

  void check(boolean holds, int at, String expected, long found) {
    if (!holds) {
      throw SnapshotException.corrupt(path, at, expected, Long.toUnsignedString(found));
    }
  }

  static SnapshotException checksum(Path path, long at, String what, long stored, long found) {
    return SnapshotException.corrupt(
        path,
        at,
        "the stored checksum %016x of %s".formatted(stored, what),
        "%016x".formatted(found));
  }
}
