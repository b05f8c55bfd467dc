package io.nuthatch.rx;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Makes something of a row that it sees where it lies. */
@FunctionalInterface
public interface RowMapper<T> {

  /** Copies the row. */
  RowMapper<Row> COPY =
      (key, value) ->
          new Row(key.toArray(ValueLayout.JAVA_BYTE), value.toArray(ValueLayout.JAVA_BYTE));

  /**
   * What a row becomes; {@code null} to leave it out.
   *
   * <p>The segments can be read until this returns. A segment of a local store lies in the store's
   * file: using it later throws {@link IllegalStateException} or, as long as the rows around it are
   * being handed out, still reads the row; it never reads anything else.
   *
   * @param key the key
   * @param value the value, which may have no bytes
   */
  T map(MemorySegment key, MemorySegment value) throws Throwable;
}
