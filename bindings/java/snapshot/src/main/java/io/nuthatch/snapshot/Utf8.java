package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U64;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/** UTF-8: validation, and conversion of keys. */
final class Utf8 {

  private static final long HIGH_BITS = 0x8080808080808080L;

  private Utf8() {}

  /** Returns whether the bytes from one offset to another are ASCII. */
  static boolean isAscii(MemorySegment bytes, long from, long to) {
    long at = from;
    for (; to - at >= 8; at += 8) {
      if ((bytes.get(U64, at) & HIGH_BITS) != 0) {
        return false;
      }
    }
    for (; at < to; at++) {
      if (bytes.get(JAVA_BYTE, at) < 0) {
        return false;
      }
    }
    return true;
  }

  /** Returns whether the bytes from one offset to another are valid UTF-8. */
  static boolean isValid(MemorySegment bytes, long from, long to) {
    long at = from;
    while (at < to) {
      if (to - at >= 8 && (bytes.get(U64, at) & HIGH_BITS) == 0) {
        at += 8;
        continue;
      }
      int length = sequenceLength(bytes, at, to);
      if (length == 0) {
        return false;
      }
      at += length;
    }
    return true;
  }

  /** Returns the length of the sequence at an offset, or 0 if it is invalid. */
  private static int sequenceLength(MemorySegment bytes, long at, long to) {
    int first = bytes.get(JAVA_BYTE, at) & 0xFF;
    if (first < 0x80) {
      return 1;
    }
    // The lowest and highest value of the second byte exclude overlong forms, surrogates and code
    // points above U+10FFFF.
    int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0xC2 || first > 0xF4 || to - at < length) {
      return 0;
    }
    int lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    int highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    int second = bytes.get(JAVA_BYTE, at + 1) & 0xFF;
    boolean isValid = lowest <= second && second <= highest;
    for (int i = 2; i < length; i++) {
      isValid &= (bytes.get(JAVA_BYTE, at + i) & 0xC0) == 0x80;
    }
    return isValid ? length : 0;
  }

  /**
   * Returns the UTF-8 of a key, or {@code null} if the text has an unpaired surrogate: such a text
   * has no UTF-8, and so no entry.
   */
  static byte[] key(String text) {
    var bytes = text.getBytes(StandardCharsets.UTF_8);
    // An unpaired surrogate was replaced by a question mark.
    for (byte b : bytes) {
      if (b == '?') {
        return hasUnpairedSurrogate(text) ? null : bytes;
      }
    }
    return bytes;
  }

  private static boolean hasUnpairedSurrogate(String text) {
    return text.codePoints()
        .anyMatch(c -> Character.MIN_SURROGATE <= c && c <= Character.MAX_SURROGATE);
  }
}
