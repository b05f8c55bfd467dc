package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U32;
import static io.nuthatch.snapshot.Layout.U64;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Strings from bytes. */
final class Text {

  /** Maximum length of a text that is copied without a call of the system's copy function. */
  private static final int MAX_SHORT = 64;

  private static final long HIGH_BITS = 0x8080808080808080L;
  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private Text() {}

  /** Returns the text at an offset, or {@code null} if it is not valid UTF-8. */
  static String of(MemorySegment bytes, long at, int length) {
    var copy = new byte[length];
    if (length <= MAX_SHORT) {
      return ofShort(bytes, at, length, copy);
    }
    MemorySegment.copy(bytes, JAVA_BYTE, at, copy, 0, length);
    if (Utf8.isAscii(bytes, at, at + length)) {
      return new String(copy, StandardCharsets.ISO_8859_1);
    }
    return decoded(bytes, at, length, copy);
  }

  /**
   * Does the same as {@link #of} for a short text.
   *
   * @param buffer receives the bytes
   */
  static String ofShort(MemorySegment bytes, long at, int length, byte[] buffer) {
    if ((copyByWords(bytes, at, length, buffer) & HIGH_BITS) == 0) {
      return new String(buffer, 0, length, StandardCharsets.ISO_8859_1);
    }
    return decoded(bytes, at, length, buffer);
  }

  /** Copies bytes. Returns all of them, combined by or. */
  private static long copyByWords(MemorySegment bytes, long at, int length, byte[] copy) {
    if (length >= 8) {
      int last = length - 8;
      long all = bytes.get(U64, at + last);
      LONG.set(copy, last, all);
      for (int i = 0; i < last; i += 8) {
        long word = bytes.get(U64, at + i);
        LONG.set(copy, i, word);
        all |= word;
      }
      return all;
    }
    if (length >= 4) {
      int last = length - 4;
      int first = bytes.get(U32, at);
      int second = bytes.get(U32, at + last);
      INT.set(copy, 0, first);
      INT.set(copy, last, second);
      return first | second;
    }
    int all = 0;
    for (int i = 0; i < length; i++) {
      copy[i] = bytes.get(JAVA_BYTE, at + i);
      all |= copy[i];
    }
    return all;
  }

  private static String decoded(MemorySegment bytes, long at, int length, byte[] copy) {
    boolean isValid = Utf8.isValid(bytes, at, at + length);
    return isValid ? new String(copy, 0, length, StandardCharsets.UTF_8) : null;
  }
}
