package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.F32;
import static io.nuthatch.snapshot.Layout.F64;
import static io.nuthatch.snapshot.Layout.U32;
import static io.nuthatch.snapshot.Layout.U64;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Rows in the form of {@code nuthatch_snapshot_writer_insert_rows}: type, lengths, key, and value
 * in its stored form.
 */
final class PackedRows {

  private static final int HEAD = 16;

  private final MemorySegment target;
  private long end;

  /** Creates an empty array of rows in a segment. */
  PackedRows(MemorySegment target) {
    this.target = target;
  }

  /**
   * A row whose strings are encoded.
   *
   * @param key the key
   * @param value the value
   * @param texts the strings of the value in UTF-8
   * @param valueLength length of the stored value in bytes
   */
  record Row(byte[] key, Value value, byte[][] texts, long valueLength) {

    static Row of(byte[] key, Value value) {
      var texts = texts(value);
      long length =
          switch (value) {
            case Value.Bytes bytes -> bytes.value().length;
            case Value.Text text -> texts[0].length;
            case Value.Bool bool -> 1;
            case Value.I64 number -> 8;
            case Value.F64 number -> 8;
            case Value.I64List list -> 8L * list.value().length;
            case Value.F64List list -> 8L * list.value().length;
            case Value.F32List list -> 4L * list.value().length;
            case Value.TextList list -> textListLength(texts);
            case Value.EmptyList empty -> 0;
          };
      return new Row(key, value, texts, length);
    }

    private static byte[][] texts(Value value) {
      var texts =
          switch (value) {
            case Value.Text text -> List.of(text.value());
            case Value.TextList list -> list.value();
            default -> List.<String>of();
          };
      return texts.stream().map(Row::utf8).toArray(byte[][]::new);
    }

    private static byte[] utf8(String text) {
      var bytes = Utf8.key(text);
      if (bytes == null) {
        throw new IllegalArgumentException("value: expected text without unpaired surrogates");
      }
      return bytes;
    }

    private static long textListLength(byte[][] texts) {
      long length = texts.length == 0 ? 0 : 4;
      for (var text : texts) {
        length += 4 + text.length;
      }
      return length;
    }

    long packedLength() {
      return HEAD + key.length + valueLength;
    }
  }

  /** Returns whether there is room for a row. */
  boolean hasRoom(Row row) {
    return row.packedLength() <= target.byteSize() - end;
  }

  boolean isEmpty() {
    return end == 0;
  }

  /** Returns the rows. */
  MemorySegment rows() {
    return target.asSlice(0, end);
  }

  void clear() {
    end = 0;
  }

  /** Adds a row, for which there must be room. */
  void add(Row row) {
    target.set(U32, end, row.value.type().code());
    target.set(U32, end + 4, row.key.length);
    target.set(U64, end + 8, row.valueLength);
    end += HEAD;
    putBytes(row.key);
    putValue(row);
  }

  private void putValue(Row row) {
    switch (row.value) {
      case Value.Bytes bytes -> putBytes(bytes.value());
      case Value.Text text -> putBytes(row.texts[0]);
      case Value.Bool bool -> putBytes(new byte[] {(byte) (bool.value() ? 1 : 0)});
      case Value.I64 number -> putLongs(number.value());
      case Value.F64 number -> putLongs(Double.doubleToRawLongBits(number.value()));
      case Value.I64List list -> putLongs(list.value());
      case Value.F64List list -> {
        MemorySegment.copy(list.value(), 0, target, F64, end, list.value().length);
        end += row.valueLength;
      }
      case Value.F32List list -> {
        MemorySegment.copy(list.value(), 0, target, F32, end, list.value().length);
        end += row.valueLength;
      }
      case Value.TextList list -> putTexts(row.texts);
      case Value.EmptyList empty -> {}
    }
  }

  private void putBytes(byte[] bytes) {
    MemorySegment.copy(bytes, 0, target, JAVA_BYTE, end, bytes.length);
    end += bytes.length;
  }

  private void putLongs(long... numbers) {
    MemorySegment.copy(numbers, 0, target, U64, end, numbers.length);
    end += 8L * numbers.length;
  }

  private void putTexts(byte[][] texts) {
    if (texts.length == 0) {
      return;
    }
    target.set(U32, end, texts.length);
    end += 4;
    int textEnd = 0;
    for (var text : texts) {
      textEnd += text.length;
      target.set(U32, end, textEnd);
      end += 4;
    }
    for (var text : texts) {
      putBytes(text);
    }
  }
}
