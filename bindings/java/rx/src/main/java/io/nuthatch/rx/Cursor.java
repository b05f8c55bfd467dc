package io.nuthatch.rx;

/**
 * A position among the rows of a table, in one state of the store. A cursor begins before the first
 * row. Each move returns whether it found a row; if not, the cursor is on no row.
 *
 * <p>Only the thread that runs {@link CursorReader#read} may use it, until that call returns. Its
 * methods throw {@link StoreException} if the store cannot be read.
 */
public interface Cursor {

  /**
   * Moves to the first row.
   *
   * @return whether there is one
   */
  boolean first();

  /**
   * Moves to the last row.
   *
   * @return whether there is one
   */
  boolean last();

  /**
   * Moves to the next row. Moves to the first row if the cursor was not moved yet.
   *
   * @return whether there is one
   */
  boolean next();

  /**
   * Moves to the previous row. Moves to the last row if the cursor was not moved yet.
   *
   * @return whether there is one
   */
  boolean previous();

  /**
   * Moves to the row with the smallest key that is greater than or equal to this key.
   *
   * @param key the key
   * @return whether there is one
   */
  boolean seek(byte[] key);

  /**
   * Moves to the row with this key.
   *
   * @param key the key
   * @return whether it exists
   */
  boolean find(byte[] key);

  /**
   * Returns the key of the current row.
   *
   * @return the key
   * @throws IllegalStateException if the cursor is on no row
   */
  byte[] key();

  /**
   * Returns the value of the current row.
   *
   * @return the value
   * @throws IllegalStateException if the cursor is on no row
   */
  byte[] value();

  /**
   * Returns the current row.
   *
   * @return key and value
   * @throws IllegalStateException if the cursor is on no row
   */
  default Row row() {
    return new Row(key(), value());
  }
}
