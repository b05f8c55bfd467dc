package io.nuthatch.rx.local;

import io.nuthatch.rx.RowMapper;
import java.util.Arrays;

/**
 * Reads a scan in chunks of mapped rows. The first chunk is small, so a subscriber that requests
 * one row maps few; later chunks have up to {@code maxRows} rows.
 */
final class ChunkReader<T> {

  /** Number of rows in a chunk that stays in the processor's cache until it is emitted. */
  static final int CACHED_ROWS = 256;

  private static final int FIRST = 16;

  private final NativeScan scan;
  private final RowMapper<? extends T> mapper;
  private final int maxRows;
  private int size = FIRST;
  private long next;
  private Throwable failure;
  private boolean isDone;

  /** The mapped rows; the first {@link #count} are valid. */
  T[] items;

  int count;

  ChunkReader(NativeScan scan, RowMapper<? extends T> mapper, int maxRows) {
    this.scan = scan;
    this.mapper = mapper;
    this.maxRows = maxRows;
    this.items = newItems(FIRST);
  }

  /**
   * Reads the next chunk, which has at least one item. Returns false after the last one, or if the
   * scan was closed.
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
      // The transaction ends before the subscriber receives the end.
      scan.close();
    }
    return isOpen && count > 0 || failed();
  }

  /** Emits the rows before the one that the mapper failed on first. */
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
      items = Arrays.copyOf(items, size);
    }
    size = Math.min(maxRows, size * 4);
  }

  /** Returns the chunk. The next one has its own array. */
  Chunk<T> take() {
    var taken = new Chunk<>(items, count);
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
