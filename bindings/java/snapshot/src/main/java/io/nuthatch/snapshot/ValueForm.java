package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U32;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;

/** The form of the bytes of each type. */
final class ValueForm {

  private ValueForm() {}

  /**
   * Returns what the bytes of a value should be, or {@code null} if they are a value of the type.
   *
   * @param type the type
   * @param bytes the segment that has the value
   * @param at offset of the value in the segment
   * @param length length of the value, decompressed
   */
  static String expected(ValueType type, MemorySegment bytes, long at, long length) {
    return switch (type) {
      case BYTES -> null;
      case STRING -> Utf8.isValid(bytes, at, at + length) ? null : "text in UTF-8";
      case BOOL -> isBool(bytes, at, length) ? null : "one byte, 0 or 1";
      case I64, F64 -> length == 8 ? null : "eight bytes";
      case EMPTY_LIST -> length == 0 ? null : "no bytes";
      case I64_LIST, F64_LIST, F32_LIST ->
          length > 0 && length % type.elementBytes() == 0
              ? null
              : "a multiple of " + type.elementBytes() + " bytes, not 0";
      case STRING_LIST -> expectedStrings(bytes, at, length);
    };
  }

  private static boolean isBool(MemorySegment bytes, long at, long length) {
    return length == 1 && (bytes.get(JAVA_BYTE, at) & 0xFE) == 0;
  }

  private static String expectedStrings(MemorySegment bytes, long at, long length) {
    long count = length < 4 ? 0 : bytes.get(U32, at) & 0xFFFFFFFFL;
    if (count == 0 || count > (length - 4) / 4) {
      return "a number of strings, 1 to " + (length - 4) / 4;
    }
    long text = at + 4 + 4 * count;
    long begin = text;
    for (long i = 0; i < count; i++) {
      long end = text + (bytes.get(U32, at + 4 + 4 * i) & 0xFFFFFFFFL);
      if (end < begin || end > at + length) {
        return "ends of strings in ascending order within the value";
      }
      if (!Utf8.isValid(bytes, begin, end)) {
        return "strings in UTF-8";
      }
      begin = end;
    }
    return begin == at + length ? null : "the last string to end with the value";
  }
}
