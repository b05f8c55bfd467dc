package io.nuthatch.snapshot.hash;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** XXH3-64 of inputs of more than 240 bytes: eight sums over stripes of 64 bytes. */
final class Stripes {

  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final int STRIPE = 64;
  private static final int STRIPES_PER_BLOCK = (Secret.LENGTH - STRIPE) / 8;
  private static final int BLOCK = STRIPE * STRIPES_PER_BLOCK;
  private static final long LOW = 0xFFFFFFFFL;

  // The sums, and their secret.
  private final long[] secret;
  private long s0 = Xxh3.PRIME32_3;
  private long s1 = Xxh3.PRIME64_1;
  private long s2 = Xxh3.PRIME64_2;
  private long s3 = Xxh3.PRIME64_3;
  private long s4 = Xxh3.PRIME64_4;
  private long s5 = Xxh3.PRIME32_2;
  private long s6 = Xxh3.PRIME64_5;
  private long s7 = Xxh3.PRIME32_1;

  private Stripes(long[] secret) {
    this.secret = secret;
  }

  static long hash(MemorySegment input, long offset, long length, long seed) {
    var sums = new Stripes(Secret.words(seed));
    long last = offset + length - 1;
    long at = offset;
    while (last - at >= BLOCK) {
      sums.add(input, at, STRIPES_PER_BLOCK);
      sums.scramble();
      at += BLOCK;
    }
    sums.add(input, at, (int) (last - at) / STRIPE);
    sums.addLast(input, offset + length - STRIPE);
    return sums.merge(length * Xxh3.PRIME64_1);
  }

  /** Adds stripes. Sums are local variables, which the compiler keeps in registers. */
  private void add(MemorySegment input, long from, int stripes) {
    long a0 = s0;
    long a1 = s1;
    long a2 = s2;
    long a3 = s3;
    long a4 = s4;
    long a5 = s5;
    long a6 = s6;
    long a7 = s7;
    for (int i = 0; i < stripes; i++) {
      long at = from + (long) STRIPE * i;
      long v0 = input.get(LONG, at);
      long v1 = input.get(LONG, at + 8);
      long v2 = input.get(LONG, at + 16);
      long v3 = input.get(LONG, at + 24);
      long v4 = input.get(LONG, at + 32);
      long v5 = input.get(LONG, at + 40);
      long v6 = input.get(LONG, at + 48);
      long v7 = input.get(LONG, at + 56);
      a0 += v1 + product(v0 ^ secret[i]);
      a1 += v0 + product(v1 ^ secret[i + 1]);
      a2 += v3 + product(v2 ^ secret[i + 2]);
      a3 += v2 + product(v3 ^ secret[i + 3]);
      a4 += v5 + product(v4 ^ secret[i + 4]);
      a5 += v4 + product(v5 ^ secret[i + 5]);
      a6 += v7 + product(v6 ^ secret[i + 6]);
      a7 += v6 + product(v7 ^ secret[i + 7]);
    }
    s0 = a0;
    s1 = a1;
    s2 = a2;
    s3 = a3;
    s4 = a4;
    s5 = a5;
    s6 = a6;
    s7 = a7;
  }

  /** Adds the last stripe of the input, which may overlap the one before. */
  private void addLast(MemorySegment input, long at) {
    int from = Secret.LENGTH - STRIPE - 7;
    var shifted = new Stripes(new long[8]);
    for (int i = 0; i < 8; i++) {
      shifted.secret[i] = Secret.at(secret, from + 8 * i);
    }
    shifted.set(this);
    shifted.add(input, at, 1);
    set(shifted);
  }

  private void set(Stripes other) {
    s0 = other.s0;
    s1 = other.s1;
    s2 = other.s2;
    s3 = other.s3;
    s4 = other.s4;
    s5 = other.s5;
    s6 = other.s6;
    s7 = other.s7;
  }

  private void scramble() {
    s0 = scrambled(s0, 0);
    s1 = scrambled(s1, 1);
    s2 = scrambled(s2, 2);
    s3 = scrambled(s3, 3);
    s4 = scrambled(s4, 4);
    s5 = scrambled(s5, 5);
    s6 = scrambled(s6, 6);
    s7 = scrambled(s7, 7);
  }

  private long scrambled(long sum, int number) {
    return (sum ^ sum >>> 47 ^ secret[STRIPES_PER_BLOCK + number]) * Xxh3.PRIME32_1;
  }

  private long merge(long start) {
    long sum = start;
    sum += Xxh3.fold(s0 ^ Secret.at(secret, 11), s1 ^ Secret.at(secret, 19));
    sum += Xxh3.fold(s2 ^ Secret.at(secret, 27), s3 ^ Secret.at(secret, 35));
    sum += Xxh3.fold(s4 ^ Secret.at(secret, 43), s5 ^ Secret.at(secret, 51));
    sum += Xxh3.fold(s6 ^ Secret.at(secret, 59), s7 ^ Secret.at(secret, 67));
    return Xxh3.avalanche(sum);
  }

  private static long product(long keyed) {
    return (keyed & LOW) * (keyed >>> 32);
  }
}
