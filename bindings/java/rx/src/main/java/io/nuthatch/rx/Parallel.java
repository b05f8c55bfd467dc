package io.nuthatch.rx;

import java.util.List;

/**
 * How a scan is distributed among threads.
 *
 * @param threads number of threads, from 1 to 256
 * @param ranges the parts: the scan reads the intersection of each with its own range. If empty,
 *     the store chooses parts of about the same size
 * @param isOrdered whether rows are emitted in the order of the scan, part after part; otherwise
 *     they are emitted as they are read
 */
public record Parallel(int threads, List<Range> ranges, boolean isOrdered) {

  /** Checks the number of threads. */
  public Parallel {
    StoreException.check(threads >= 1 && threads <= 256, "threads", "from 1 to 256", threads);
    ranges = List.copyOf(ranges);
  }

  /**
   * Returns a parallel scan with a number of threads. The store chooses the parts; each thread
   * reads one part after the other.
   *
   * @param threads number of threads
   * @return the division
   */
  public static Parallel split(int threads) {
    return new Parallel(threads, List.of(), false);
  }

  /**
   * Returns a parallel scan of these parts, with a thread for each, up to 256 threads.
   *
   * @param ranges the parts, at least one
   * @return the division
   * @throws StoreException with the code {@code options} if there are no parts
   */
  public static Parallel of(Range... ranges) {
    StoreException.check(ranges.length > 0, "ranges", "at least one", ranges.length);
    return new Parallel(Math.min(ranges.length, 256), List.of(ranges), false);
  }

  /**
   * Emits rows in the order of the scan. This needs more memory: each thread reads up to 32 chunks
   * of a part ahead instead of 8. A chunk has up to 1,024 rows, and about {@link Scan#batchBytes}
   * bytes.
   *
   * @return the changed division
   */
  public Parallel ordered() {
    return new Parallel(threads, ranges, true);
  }
}
