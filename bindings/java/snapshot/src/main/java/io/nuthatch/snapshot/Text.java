package io.nuthatch.snapshot;

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
  private static final int MAX_COPIED_BY_WORDS = 64;

  private static final long HIGH_BITS = 0x8080808080808080L;
  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private Text() {}

  /** Returns the text at an offset, or {@code null} if it is not valid UTF-8. */
  static String of(MemorySegment bytes, long at, int length) {
    var copy = new byte[length];
    if (length > MAX_COPIED_BY_WORDS) {
      MemorySegment.copy(bytes, JAVA_BYTE, at, copy, 0, length);
      return Utf8.isAscii(bytes, at, at + length) ? ascii(copy) : decoded(bytes, at, copy);
    }
    return (copyByWords(bytes, at, copy) & HIGH_BITS) == 0 ? ascii(copy) : decoded(bytes, at, copy);
  }

  /** Copies bytes. Returns all of them, combined by or. */
  private static long copyByWords(MemorySegment bytes, long at, byte[] copy) {
    long all = 0;
    int length = copy.length;
    if (length < 8) {
      for (int i = 0; i < length; i++) {
        byte b = bytes.get(JAVA_BYTE, at + i);
        copy[i] = b;
        all |= b;
      }
      return all;
    }
    int last = length - 8;
    for (int i = 0; i < last; i += 8) {
      long word = bytes.get(U64, at + i);
      LONG.set(copy, i, word);
      all |= word;
    }
    long word = bytes.get(U64, at + last);
    LONG.set(copy, last, word);
    return all | word;
  }

  private static String ascii(byte[] copy) {
    return new String(copy, StandardCharsets.ISO_8859_1);
  }

  private static String decoded(MemorySegment bytes, long at, byte[] copy) {
    boolean isValid = Utf8.isValid(bytes, at, at + copy.length);
    return isValid ? new String(copy, StandardCharsets.UTF_8) : null;
  }
}
