package io.nuthatch.rx;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Converts a row, which it reads in place.
 *
 * @param <T> the type of the results
 */
@FunctionalInterface
public interface RowMapper<T> {

  /** Copies the row. */
  RowMapper<Row> COPY =
      (key, value) ->
          new Row(key.toArray(ValueLayout.JAVA_BYTE), value.toArray(ValueLayout.JAVA_BYTE));

  /**
   * Returns the result for a row; {@code null} to emit nothing for it.
   *
   * <p>The segments are valid until this method returns. Those of a local store refer to the
   * store's memory map. A later access throws {@link IllegalStateException}, or still reads the row
   * while rows of the same chunk are being mapped; it never reads other bytes.
   *
   * @param key the key
   * @param value the value; may be empty
   * @return the result, or {@code null}
   * @throws Throwable to fail the stream
   */
  T map(MemorySegment key, MemorySegment value) throws Throwable;
}
