package io.nuthatch.rx.local;

import io.nuthatch.rx.RowMapper;
import java.util.Arrays;
import java.util.List;

/**
 * What a mapper makes of the rows of a scan, some at a time. The first chunk is small, so that who
 * wants one row pays for few; the others are of a size that stays in the processor's cache.
 */
final class ChunkReader<T> {

  private static final int FIRST = 16;
  private static final int MOST = 256;

  private final NativeScan scan;
  private final RowMapper<? extends T> mapper;
  private int size = FIRST;
  private long next;
  private Throwable failure;
  private boolean isDone;

  /** What was made; the first {@link #count} are valid. */
  T[] items;

  int count;

  ChunkReader(NativeScan scan, RowMapper<? extends T> mapper) {
    this.scan = scan;
    this.mapper = mapper;
    this.items = newItems(FIRST);
  }

  /**
   * Reads the next chunk, which has an item at least; false after the last, or where the scan was
   * closed.
   */
  boolean read() throws Throwable {
    count = 0;
    if (isDone || !scan.begin()) {
      return failed();
    }
    boolean isOpen = true;
    try {
      while (count == 0 && !isDone && failure == null) {
        fill();
      }
    } finally {
      isOpen = scan.end();
    }
    if (isDone) {
      // The transaction ends before anybody hears of it.
      scan.close();
    }
    return isOpen && count > 0 || failed();
  }

  /** Rows before the one of which the mapper failed come first. */
  private boolean failed() throws Throwable {
    if (failure != null) {
      var thrown = failure;
      failure = null;
      throw thrown;
    }
    return false;
  }

  private void fill() {
    try {
      if (next == scan.count) {
        next = 0;
        scan.next();
        if (scan.count == 0) {
          isDone = true;
          return;
        }
      }
      int many = (int) Math.min(size, scan.count - next);
      grow(many);
      Rows.make(scan.rows + next * Layouts.ROW.byteSize(), many, mapper, this);
      next += many;
    } catch (Throwable thrown) {
      failure = thrown;
      isDone = true;
    }
  }

  private void grow(int many) {
    if (items.length < many) {
      items = Arrays.copyOf(items, MOST);
    }
    size = Math.min(MOST, size * 4);
  }

  /** The chunk, as a list of its own. */
  List<T> take() {
    var taken = Arrays.asList(items).subList(0, count);
    items = newItems(items.length);
    count = 0;
    return taken;
  }

  @SuppressWarnings("unchecked")
  private static <T> T[] newItems(int many) {
    return (T[]) new Object[many];
  }

  void close() {
    scan.close();
  }
}
