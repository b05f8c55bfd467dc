package io.nuthatch.rx;

/**
 * A place among the rows of a table, in one state of it. It begins before the first row. Each move
 * answers whether there is a row; where there is none the cursor stands on none.
 *
 * <p>It is used within {@link CursorReader#read} and by its thread alone, and throws
 * {@link StoreException} where the store fails.
 */
public interface Cursor {

  /** Moves to the first row. */
  boolean first();

  /** Moves to the last row. */
  boolean last();

  /** Moves to the next row; to the first at the beginning. */
  boolean next();

  /** Moves to the row before; to the last at the beginning. */
  boolean previous();

  /** Moves to the row of the least key that is not below this one. */
  boolean seek(byte[] key);

  /** Moves to the row of this key. */
  boolean find(byte[] key);

  /** The key of the row that it stands on; throws {@link IllegalStateException} on none. */
  byte[] key();

  /** The value of the row that it stands on; throws {@link IllegalStateException} on none. */
  byte[] value();

  /** The row that it stands on; throws {@link IllegalStateException} on none. */
  default Row row() {
    return new Row(key(), value());
  }
}
