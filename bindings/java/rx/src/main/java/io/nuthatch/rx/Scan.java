package io.nuthatch.rx;

import java.util.Objects;

/**
 * What a scan reads, and in which way.
 *
 * @param range the keys
 * @param isBackward from the greatest key on
 * @param limit so many rows at most
 * @param isKeysOnly without values: these are empty
 * @param batchRows how many rows are read at once, at most, and so how many ahead of demand
 * @param batchBytes after how many bytes of keys and values a batch ends; it has a row at least
 */
public record Scan(
    Range range,
    boolean isBackward,
    long limit,
    boolean isKeysOnly,
    int batchRows,
    int batchBytes) {

  /** The rows of a batch, at most, unless told otherwise. */
  public static final int BATCH_ROWS = 4096;

  /** The bytes of keys and values of a batch, about, unless told otherwise. */
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

  /** All rows, from the least key on. */
  public static Scan all() {
    return ALL;
  }

  /** All rows of a range, from the least key on. */
  public static Scan of(Range range) {
    return new Scan(range, false, Long.MAX_VALUE, false, BATCH_ROWS, BATCH_BYTES);
  }

  /** From the greatest key on. */
  public Scan backward() {
    return new Scan(range, true, limit, isKeysOnly, batchRows, batchBytes);
  }

  /** So many rows at most. */
  public Scan limit(long rows) {
    return new Scan(range, isBackward, rows, isKeysOnly, batchRows, batchBytes);
  }

  /** Keys with empty values. */
  public Scan keysOnly() {
    return new Scan(range, isBackward, limit, true, batchRows, batchBytes);
  }

  /** So many rows are read at once, at most. */
  public Scan batchRows(int rows) {
    return new Scan(range, isBackward, limit, isKeysOnly, rows, batchBytes);
  }

  /** So many bytes are read at once, about. */
  public Scan batchBytes(int bytes) {
    return new Scan(range, isBackward, limit, isKeysOnly, batchRows, bytes);
  }

  /** The same for the keys of its range that are in this one, too. */
  public Scan within(Range other) {
    return new Scan(range.and(other), isBackward, limit, isKeysOnly, batchRows, batchBytes);
  }
}
