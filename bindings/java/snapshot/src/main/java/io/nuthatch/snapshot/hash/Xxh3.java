package io.nuthatch.snapshot.hash;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * XXH3-64 with a seed: {@code XXH3_64bits_withSeed} of the reference implementation, as <a
 * href="https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md">its specification</a>
 * describes it. Inputs of more than 240 bytes are hashed by {@link Stripes}.
 */
public final class Xxh3 {

  /** Maximum length of an input that is hashed without stripes. */
  static final int MAX_SHORT = 240;

  static final long PRIME32_1 = 0x9E3779B1L;
  static final long PRIME32_2 = 0x85EBCA77L;
  static final long PRIME32_3 = 0xC2B2AE3DL;
  static final long PRIME64_1 = 0x9E3779B185EBCA87L;
  static final long PRIME64_2 = 0xC2B2AE3D27D4EB4FL;
  static final long PRIME64_3 = 0x165667B19E3779F9L;
  static final long PRIME64_4 = 0x85EBCA77C2B2AE63L;
  static final long PRIME64_5 = 0x27D4EB2F165667C5L;

  private static final long PRIME_MX1 = 0x165667919E3779F9L;
  private static final long PRIME_MX2 = 0x9FB21C651E98DF25L;

  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  // Words of the secret that short inputs are combined with.
  private static final long FLIP_0 = Secret.at(56) ^ Secret.at(64);
  private static final long FLIP_3 = (Secret.at(0) ^ Secret.at(0) >>> 32) & 0xFFFFFFFFL;
  private static final long FLIP_8 = Secret.at(8) ^ Secret.at(16);
  private static final long FLIP_16_LOW = Secret.at(24) ^ Secret.at(32);
  private static final long FLIP_16_HIGH = Secret.at(40) ^ Secret.at(48);

  private Xxh3() {}

  /**
   * Returns the hash of the first bytes of an array.
   *
   * @param input the array
   * @param length number of bytes
   * @param seed the seed
   * @return the hash
   */
  public static long hash(byte[] input, int length, long seed) {
    if (length <= 16) {
      return length > 8 ? hash9To16(input, length, seed) : hash0To8(input, length, seed);
    }
    if (length <= 128) {
      return hash17To128(input, length, seed);
    }
    return length <= MAX_SHORT
        ? hash129To240(input, length, seed)
        : Stripes.hash(MemorySegment.ofArray(input), 0, length, seed);
  }

  /**
   * Returns the hash of a part of a segment.
   *
   * @param input the segment
   * @param offset offset of the first byte
   * @param length number of bytes
   * @param seed the seed
   * @return the hash
   */
  public static long hash(MemorySegment input, long offset, long length, long seed) {
    if (length > MAX_SHORT) {
      return Stripes.hash(input, offset, length, seed);
    }
    var copy = new byte[(int) length];
    MemorySegment.copy(input, JAVA_BYTE, offset, copy, 0, copy.length);
    return hash(copy, copy.length, seed);
  }

  private static long hash0To8(byte[] input, int length, long seed) {
    if (length >= 4) {
      long flip = FLIP_8 - (seed ^ (long) Integer.reverseBytes((int) seed) << 32);
      long words = (int4(input, length - 4) & 0xFFFFFFFFL) + ((long) int4(input, 0) << 32);
      return mixShort(words ^ flip, length);
    }
    if (length == 0) {
      return avalanche64(seed ^ FLIP_0);
    }
    int words =
        (input[0] & 0xFF) << 16
            | (input[length >> 1] & 0xFF) << 24
            | input[length - 1] & 0xFF
            | length << 8;
    return avalanche64((words & 0xFFFFFFFFL) ^ (FLIP_3 + seed));
  }

  private static long hash9To16(byte[] input, int length, long seed) {
    long low = long8(input, 0) ^ (FLIP_16_LOW + seed);
    long high = long8(input, length - 8) ^ (FLIP_16_HIGH - seed);
    return avalanche(length + Long.reverseBytes(low) + high + fold(low, high));
  }

  private static long hash17To128(byte[] input, int length, long seed) {
    long sum = length * PRIME64_1;
    for (int i = length - 1 >> 5; i >= 0; i--) {
      sum += mix16(input, 16 * i, 32 * i, seed);
      sum += mix16(input, length - 16 * (i + 1), 32 * i + 16, seed);
    }
    return avalanche(sum);
  }

  private static long hash129To240(byte[] input, int length, long seed) {
    long sum = length * PRIME64_1;
    for (int i = 0; i < 128; i += 16) {
      sum += mix16(input, i, i, seed);
    }
    sum = avalanche(sum);
    for (int i = 128; i + 16 <= length; i += 16) {
      sum += mix16(input, i, i - 128 + 3, seed);
    }
    return avalanche(sum + mix16(input, length - 16, 136 - 17, seed));
  }

  /** Mixes 16 bytes of the input with 16 bytes of the secret. */
  private static long mix16(byte[] input, int at, int secret, long seed) {
    long low = long8(input, at) ^ (Secret.at(secret) + seed);
    long high = long8(input, at + 8) ^ (Secret.at(secret + 8) - seed);
    return fold(low, high);
  }

  private static long mixShort(long words, int length) {
    long mixed = words ^ Long.rotateLeft(words, 49) ^ Long.rotateLeft(words, 24);
    mixed *= PRIME_MX2;
    mixed ^= (mixed >>> 35) + length;
    mixed *= PRIME_MX2;
    return mixed ^ mixed >>> 28;
  }

  /** Returns the two halves of the product of 128 bits, combined by exclusive or. */
  static long fold(long a, long b) {
    return a * b ^ Math.unsignedMultiplyHigh(a, b);
  }

  static long avalanche(long hash) {
    long mixed = hash ^ hash >>> 37;
    mixed *= PRIME_MX1;
    return mixed ^ mixed >>> 32;
  }

  /** The last step of XXH64, for inputs of at most three bytes. */
  private static long avalanche64(long hash) {
    long mixed = hash ^ hash >>> 33;
    mixed *= PRIME64_2;
    mixed ^= mixed >>> 29;
    mixed *= PRIME64_3;
    return mixed ^ mixed >>> 32;
  }

  private static long long8(byte[] input, int at) {
    return (long) LONG.get(input, at);
  }

  private static int int4(byte[] input, int at) {
    return (int) INT.get(input, at);
  }
}
