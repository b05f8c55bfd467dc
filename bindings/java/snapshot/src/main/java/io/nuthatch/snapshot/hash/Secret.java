package io.nuthatch.snapshot.hash;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.HexFormat;

/** The secret of 192 bytes that XXH3 combines its input with. */
final class Secret {

  static final int LENGTH = 192;

  private static final byte[] BYTES =
      HexFormat.of()
          .parseHex(
              "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
                  + "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
                  + "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
                  + "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
                  + "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
                  + "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e");

  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private Secret() {}

  /** Returns the eight bytes at an offset. */
  static long at(int offset) {
    return (long) LONG.get(BYTES, offset);
  }

  /** Returns the secret for inputs of more than 240 bytes with a seed, in words of eight bytes. */
  static long[] words(long seed) {
    var words = new long[LENGTH / 8];
    for (int i = 0; i < words.length; i++) {
      words[i] = at(8 * i) + (i % 2 == 0 ? seed : -seed);
    }
    return words;
  }

  /** Returns the eight bytes at an offset that need not be a multiple of eight. */
  static long at(long[] words, int offset) {
    int shift = offset % 8 * 8;
    long low = words[offset / 8] >>> shift;
    return shift == 0 ? low : low | words[offset / 8 + 1] << 64 - shift;
  }
}
