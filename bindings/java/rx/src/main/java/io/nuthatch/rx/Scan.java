package io.nuthatch.rx;

import java.util.Objects;

/**
 * The range and options of a scan.
 *
 * @param range the keys
 * @param isReverse whether rows are returned in descending key order
 * @param limit maximum number of rows
 * @param isKeysOnly whether values are omitted; they are empty then
 * @param batchRows maximum number of rows that are read at once, and so ahead of the subscriber's
 *     requests
 * @param batchBytes a batch ends when its keys and values have this many bytes; it has at least one
 *     row
 */
public record Scan(
    Range range,
    boolean isReverse,
    long limit,
    boolean isKeysOnly,
    int batchRows,
    int batchBytes) {

  /** Default of {@link #batchRows()}. */
  public static final int BATCH_ROWS = 4096;

  /** Default of {@link #batchBytes()}: 256 KiB. */
  public static final int BATCH_BYTES = 256 << 10;

  private static final Scan ALL =
      new Scan(Range.all(), false, Long.MAX_VALUE, false, BATCH_ROWS, BATCH_BYTES);

  /** Checks the numbers. */
  public Scan {
    Objects.requireNonNull(range, "range");
    StoreException.check(limit >= 0, "limit", "0 rows or more", limit);
    StoreException.check(batchRows > 0, "batchRows", "1 row or more", batchRows);
    StoreException.check(batchBytes > 0, "batchBytes", "1 byte or more", batchBytes);
  }

  /**
   * Returns a scan of all rows, in ascending key order.
   *
   * @return the scan
   */
  public static Scan all() {
    return ALL;
  }

  /**
   * Returns a scan of all rows of a range, in ascending key order.
   *
   * @param range the keys
   * @return the scan
   */
  public static Scan of(Range range) {
    return new Scan(range, false, Long.MAX_VALUE, false, BATCH_ROWS, BATCH_BYTES);
  }

  /**
   * Returns this scan in descending key order.
   *
   * @return the changed scan
   */
  public Scan reverse() {
    return new Scan(range, true, limit, isKeysOnly, batchRows, batchBytes);
  }

  /**
   * Sets the maximum number of rows; no limit by default.
   *
   * @param rows maximum number of rows
   * @return the changed scan
   */
  public Scan limit(long rows) {
    return new Scan(range, isReverse, rows, isKeysOnly, batchRows, batchBytes);
  }

  /**
   * Returns this scan with empty values.
   *
   * @return the changed scan
   */
  public Scan keysOnly() {
    return new Scan(range, isReverse, limit, true, batchRows, batchBytes);
  }

  /**
   * Sets the maximum number of rows that are read at once; 4096 by default. A remote store ignores
   * it.
   *
   * @param rows maximum number of rows that are read at once
   * @return the changed scan
   */
  public Scan batchRows(int rows) {
    return new Scan(range, isReverse, limit, isKeysOnly, rows, batchBytes);
  }

  /**
   * Sets the number of bytes of keys and values at which a batch ends; 256 KiB by default.
   *
   * @param bytes number of bytes of keys and values after which a batch ends
   * @return the changed scan
   */
  public Scan batchBytes(int bytes) {
    return new Scan(range, isReverse, limit, isKeysOnly, batchRows, bytes);
  }

  /**
   * Returns this scan with the intersection of its range and another one.
   *
   * @param other the other range
   * @return the changed scan
   */
  public Scan within(Range other) {
    return new Scan(range.and(other), isReverse, limit, isKeysOnly, batchRows, batchBytes);
  }
}
