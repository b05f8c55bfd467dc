package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U32;
import static io.nuthatch.snapshot.Layout.U64;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Comparison of keys with the keys of records. */
final class Keys {

  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private Keys() {}

  /** Returns whether a key has the bytes at an offset of a file. */
  static boolean isEqual(byte[] key, int length, MemorySegment bytes, long at) {
    if (length >= 8) {
      // The last eight bytes first: keys with a common prefix differ there.
      int last = length - 8;
      long difference = (long) LONG.get(key, last) ^ bytes.get(U64, at + last);
      for (int i = 0; i < last; i += 8) {
        difference |= (long) LONG.get(key, i) ^ bytes.get(U64, at + i);
      }
      return difference == 0;
    }
    if (length >= 4) {
      int last = length - 4;
      return ((int) INT.get(key, 0) ^ bytes.get(U32, at)
              | (int) INT.get(key, last) ^ bytes.get(U32, at + last))
          == 0;
    }
    for (int i = 0; i < length; i++) {
      if (key[i] != bytes.get(JAVA_BYTE, at + i)) {
        return false;
      }
    }
    return true;
  }
}
