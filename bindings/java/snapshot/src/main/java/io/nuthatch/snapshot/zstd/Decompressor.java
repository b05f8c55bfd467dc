package io.nuthatch.snapshot.zstd;

/**
 * Decompresses zstd frames with the library zstd-jni, which is optional. Thread-safe. Its memory
 * outside the heap is freed after the decompressor becomes unreachable.
 */
public abstract sealed class Decompressor permits JniDecompressor {

  private static final boolean IS_AVAILABLE = isLoaded();

  Decompressor() {}

  private static boolean isLoaded() {
    try {
      return JniDecompressor.isLoaded();
    } catch (LinkageError e) {
      return false; // The library is missing, or has no native code for this machine.
    }
  }

  /**
   * Returns whether the library can be used.
   *
   * @return whether it can be used
   */
  public static boolean isAvailable() {
    return IS_AVAILABLE;
  }

  /**
   * Returns a decompressor. Requires {@link #isAvailable}.
   *
   * @param dictionary the dictionary of all frames, or {@code null}
   * @return the decompressor
   */
  public static Decompressor of(byte[] dictionary) {
    return new JniDecompressor(dictionary);
  }

  /**
   * Decompresses a frame.
   *
   * @param frame the frame
   * @param content the array for the content, of the length that the frame states
   * @return {@code null}, or why the frame cannot be decompressed
   */
  public abstract String decompress(byte[] frame, byte[] content);
}
