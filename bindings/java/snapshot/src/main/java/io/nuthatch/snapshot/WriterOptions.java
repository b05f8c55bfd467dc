package io.nuthatch.snapshot;

import java.util.Objects;

/**
 * Options of a writer. The bytes of the file depend on the rows and on all options except {@code
 * threads} and {@code memoryBytes}.
 *
 * @param onDuplicate how rows with the same key are handled; an error by default
 * @param compressionLevel level of zstd, 1 to 22; 0, the default, for no compression. A value that
 *     would shrink by less than an eighth, or has more than 16 MiB, is not compressed
 * @param threads maximum number of threads; 0, the default, for all cores
 * @param memoryBytes memory budget in bytes; 0, the default, for 1 GiB; less than 16 MiB counts as
 *     16 MiB. Rows beyond it are written to temporary files in the folder of the snapshot
 * @param seed seed of the key hash; 0 by default
 * @param shards number of shards of a set, at most 65,536; 0, the default, for one file
 */
public record WriterOptions(
    OnDuplicate onDuplicate,
    int compressionLevel,
    int threads,
    long memoryBytes,
    long seed,
    int shards) {

  /** How rows with the same key are handled. */
  public enum OnDuplicate {
    /** They are an error with the code {@code duplicate}. */
    ERROR,
    /** The row that was added first is kept. */
    KEEP_FIRST,
    /** The row that was added last is kept. */
    KEEP_LAST
  }

  private static final int MAX_COMPRESSION_LEVEL = 22;
  private static final WriterOptions DEFAULTS = new WriterOptions(OnDuplicate.ERROR, 0, 0, 0, 0, 0);

  /**
   * Checks that all numbers are within their bounds.
   *
   * @throws IllegalArgumentException if one of them is not
   */
  public WriterOptions {
    Objects.requireNonNull(onDuplicate, "onDuplicate");
    checkRange("compressionLevel", compressionLevel, MAX_COMPRESSION_LEVEL);
    checkRange("threads", threads, Integer.MAX_VALUE);
    checkRange("memoryBytes", memoryBytes, Long.MAX_VALUE);
    checkRange("shards", shards, Layout.MAX_SHARDS);
  }

  private static void checkRange(String name, long found, long max) {
    if (found < 0 || found > max) {
      throw new IllegalArgumentException(
          "%s: expected 0 to %d, found %d".formatted(name, max, found));
    }
  }

  /**
   * Returns the defaults.
   *
   * @return the default options
   */
  public static WriterOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Sets how rows with the same key are handled.
   *
   * @param handling the handling
   * @return the changed options
   */
  public WriterOptions onDuplicate(OnDuplicate handling) {
    return new WriterOptions(handling, compressionLevel, threads, memoryBytes, seed, shards);
  }

  /**
   * Sets the compression of values.
   *
   * @param level level of zstd, 1 to 22; 0 for no compression
   * @return the changed options
   */
  public WriterOptions compressionLevel(int level) {
    return new WriterOptions(onDuplicate, level, threads, memoryBytes, seed, shards);
  }

  /**
   * Sets the maximum number of threads.
   *
   * @param max the number; 0 for all cores
   * @return the changed options
   */
  public WriterOptions threads(int max) {
    return new WriterOptions(onDuplicate, compressionLevel, max, memoryBytes, seed, shards);
  }

  /**
   * Sets the memory budget.
   *
   * @param bytes the budget in bytes; 0 for 1 GiB
   * @return the changed options
   */
  public WriterOptions memoryBytes(long bytes) {
    return new WriterOptions(onDuplicate, compressionLevel, threads, bytes, seed, shards);
  }

  /**
   * Sets the seed of the key hash.
   *
   * @param bits the seed, unsigned
   * @return the changed options
   */
  public WriterOptions seed(long bits) {
    return new WriterOptions(onDuplicate, compressionLevel, threads, memoryBytes, bits, shards);
  }

  /**
   * Sets the number of shards of a set.
   *
   * @param count the number; 0 for one file
   * @return the changed options
   */
  public WriterOptions shards(int count) {
    return new WriterOptions(onDuplicate, compressionLevel, threads, memoryBytes, seed, count);
  }
}
