package io.nuthatch.rx;

import java.util.List;

/**
 * How a scan is shared out among threads.
 *
 * @param threads how many read at once, from 1 to 256
 * @param ranges the parts, of each of which the scan reads what is in its own range as well; empty
 *     for parts of about the same size, cut by the store
 * @param isOrdered whether rows come in the order of the scan, with parts in the order given;
 *     otherwise as they are read
 */
public record Parallel(int threads, List<Range> ranges, boolean isOrdered) {

  /** Checks the number of threads. */
  public Parallel {
    StoreException.check(threads >= 1 && threads <= 256, "threads", "from 1 to 256", threads);
    ranges = List.copyOf(ranges);
  }

  /** So many threads, each of which takes part after part of the range. */
  public static Parallel split(int threads) {
    return new Parallel(threads, List.of(), false);
  }

  /** A thread for each of these parts. */
  public static Parallel of(Range... ranges) {
    StoreException.check(ranges.length > 0, "ranges", "at least one", ranges.length);
    return new Parallel(Math.min(ranges.length, 256), List.of(ranges), false);
  }

  /**
   * Rows come in the order of the scan. This needs more memory: threads read up to 32 chunks of a
   * part ahead, and not 8. A chunk has up to 1,024 rows, and about {@link Scan#batchBytes} at most.
   */
  public Parallel ordered() {
    return new Parallel(threads, ranges, true);
  }
}
