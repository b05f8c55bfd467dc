package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Row;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.StoreException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Converts many rows at once from native memory to objects. */
final class Rows {

  private static final long EACH = Layouts.ROW.byteSize();
  private static final long VALUE = Layouts.at(Layouts.ROW, "value");
  private static final long KEY_LEN = Layouts.at(Layouts.ROW, "key_len");
  private static final long VALUE_LEN = Layouts.at(Layouts.ROW, "value_len");

  private Rows() {}

  /**
   * Maps rows, and sets {@code into.count} to the number of results without {@code null}.
   *
   * @param rows the address of the first row
   * @param many number of rows
   * @param into receives the results
   */
  static <T> void make(long rows, int many, RowMapper<? extends T> mapper, ChunkReader<T> into)
      throws Throwable {
    if (mapper == RowMapper.COPY) {
      copy(rows, many, into.items);
      into.count = many;
    } else {
      map(rows, many, mapper, into);
    }
  }

  private static void copy(long rows, int many, Object[] into) {
    var all = Scratch.EVERYTHING;
    for (int i = 0; i < many; i++) {
      long row = rows + i * EACH;
      int keyLen = all.get(JAVA_INT, row + KEY_LEN);
      int valueLen = all.get(JAVA_INT, row + VALUE_LEN);
      into[i] =
          new Row(
              bytes(all, all.get(JAVA_LONG, row), keyLen),
              bytes(all, all.get(JAVA_LONG, row + VALUE), valueLen));
    }
  }

  private static byte[] bytes(MemorySegment all, long address, int len) {
    if (len < 0) {
      throw tooLong(Integer.toUnsignedLong(len));
    }
    var bytes = new byte[len];
    MemorySegment.copy(all, JAVA_BYTE, address, bytes, 0, len);
    return bytes;
  }

  /** Copies bytes of native memory. */
  static byte[] bytes(long address, long len) {
    if (len > Integer.MAX_VALUE - 8) {
      throw tooLong(len);
    }
    return bytes(Scratch.EVERYTHING, address, (int) len);
  }

  private static StoreException tooLong(long len) {
    var text = "value: expected at most 2 GiB, as long as an array can be, found " + len + " bytes";
    return StoreException.of("too-long", text);
  }

  /** Copies one row. */
  static Row row(MemorySegment row) {
    return new Row(
        bytes(row.get(JAVA_LONG, 0), row.get(JAVA_INT, KEY_LEN)),
        bytes(row.get(JAVA_LONG, VALUE), row.get(JAVA_INT, VALUE_LEN)));
  }

  /** Maps rows. Their segments end with the arena: a later access throws. */
  private static <T> void map(
      long rows, int many, RowMapper<? extends T> mapper, ChunkReader<T> into) throws Throwable {
    var items = into.items;
    int made = 0;
    try (var arena = Arena.ofConfined()) {
      var all = MemorySegment.NULL.reinterpret(Long.MAX_VALUE, arena, null).asReadOnly();
      for (int i = 0; i < many; i++) {
        long row = rows + i * EACH;
        int keyLen = all.get(JAVA_INT, row + KEY_LEN);
        int valueLen = all.get(JAVA_INT, row + VALUE_LEN);
        T result =
            mapper.map(
                all.asSlice(all.get(JAVA_LONG, row), keyLen),
                all.asSlice(all.get(JAVA_LONG, row + VALUE), Integer.toUnsignedLong(valueLen)));
        if (result != null) {
          items[made++] = result;
        }
      }
    } finally {
      // Also if the mapper failed: earlier results are emitted first.
      into.count = made;
    }
  }
}
