package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.F32;
import static io.nuthatch.snapshot.Layout.F64;
import static io.nuthatch.snapshot.Layout.U32;
import static io.nuthatch.snapshot.Layout.U64;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * The place of a value in a snapshot. A lookup with a reused view allocates nothing: {@link
 * Snapshot#find} sets the view, and its methods read the value in place.
 *
 * <p>A view is for one thread at a time. It is valid until the next lookup with it. After its
 * snapshot is closed, methods that read the file throw {@link SnapshotClosedException}.
 *
 * <p>Methods that read the value throw {@link SnapshotException}: with the code {@code wrong-type}
 * for another type, {@code corrupt} for bytes that are not a value of their type, {@code
 * unreadable} for a page that cannot be read, and {@code unsupported} for a value that is too long
 * for an array. All methods but {@link #isPresent} throw {@link IllegalStateException} if the last
 * lookup found no value. A compressed value is decompressed by the first read, which allocates
 * memory for the content; the view keeps it until the next lookup.
 */
public final class ValueView {

  private static final byte[] NO_BYTES = {};
  private static final int MIN_KEY_BUFFER = 255;
  private static final int TEXT_BUFFER = 64;
  private static final int MAX_ARRAY = Integer.MAX_VALUE - 8;

  private SnapshotFile file;

  /** The type code, with the bit {@code COMPRESSED} of the tag; 0 without a value. */
  private int tag;

  /** Offset and length of the stored bytes in the file. */
  private long storedAt;

  private long storedLength;

  /** The content of a compressed value after the first read, or {@code null}. */
  private MemorySegment content;

  private LineSearch search;

  /** Receives the bytes of short strings. */
  private final byte[] textBuffer;

  /** The last key that was copied from a segment. */
  private byte[] keyBuffer = NO_BYTES;

  /** Creates a view without a value. */
  public ValueView() {
    this(new byte[TEXT_BUFFER]);
  }

  private ValueView(byte[] textBuffer) {
    this.textBuffer = textBuffer;
  }

  /** Returns a view for one lookup, without a buffer that only repeated lookups need. */
  static ValueView forOneLookup() {
    return new ValueView(NO_BYTES);
  }

  /**
   * Sets the view to a value.
   *
   * @param from the file
   * @param typeCode the type code, with the bit {@code COMPRESSED} of the tag
   * @param offset offset of the stored bytes in the file
   * @param bytes their number
   */
  void set(SnapshotFile from, int typeCode, long offset, long bytes) {
    // A reference is written only if it changes: the write barrier of the garbage collector takes
    // longer than the comparison.
    if (file != from) {
      file = from;
    }
    if (content != null) {
      content = null;
    }
    tag = typeCode;
    storedAt = offset;
    storedLength = bytes;
  }

  void clear() {
    tag = 0;
  }

  /**
   * Returns whether the last lookup found a value.
   *
   * @return whether there is a value
   */
  public boolean isPresent() {
    return tag != 0;
  }

  /**
   * Returns the type of the value.
   *
   * @return the type
   */
  public ValueType type() {
    requirePresent();
    return ValueType.of(tag & Layout.Record.TYPE_MASK);
  }

  /**
   * Returns whether the value is stored compressed, as a zstd frame.
   *
   * @return whether it is compressed
   */
  public boolean isCompressed() {
    requirePresent();
    return (tag & Layout.Record.COMPRESSED) != 0;
  }

  /**
   * Returns the length of the value in bytes, decompressed. That of a list of strings includes the
   * number and the offsets of the strings.
   *
   * @return the length
   */
  public long byteLength() {
    open();
    return length();
  }

  /**
   * Returns the value.
   *
   * @return a copy of the value
   */
  public Value asValue() {
    return switch (type()) {
      case BYTES -> new Value.Bytes(asBytes());
      case STRING -> new Value.Text(asString());
      case BOOL -> new Value.Bool(asBoolean());
      case I64 -> new Value.I64(asLong());
      case F64 -> new Value.F64(asDouble());
      case I64_LIST -> new Value.I64List(asLongs());
      case F64_LIST -> new Value.F64List(asDoubles());
      case F32_LIST -> new Value.F32List(asFloats());
      case STRING_LIST -> new Value.TextList(asStrings());
      case EMPTY_LIST -> {
        open(ValueType.EMPTY_LIST);
        yield new Value.EmptyList();
      }
    };
  }

  /**
   * Returns a string.
   *
   * @return the text
   */
  public String asString() {
    try {
      String text;
      if (tag == ValueType.STRING_CODE && storedLength <= textBuffer.length) {
        text = Text.ofShort(file.bytes, storedAt, (int) storedLength, textBuffer);
      } else {
        require(ValueType.STRING);
        open();
        text = Text.of(source(), at(), arrayLength(1));
      }
      if (text == null) {
        throw invalid("text in UTF-8");
      }
      return text;
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns a copy of bytes.
   *
   * @return the bytes
   */
  public byte[] asBytes() {
    try {
      open(ValueType.BYTES);
      var copy = new byte[arrayLength(1)];
      MemorySegment.copy(source(), JAVA_BYTE, at(), copy, 0, copy.length);
      return copy;
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns a boolean.
   *
   * @return the boolean
   */
  public boolean asBoolean() {
    try {
      open(ValueType.BOOL);
      return source().get(JAVA_BYTE, at()) != 0;
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns an integer.
   *
   * @return the integer
   */
  public long asLong() {
    try {
      open(ValueType.I64);
      return source().get(U64, at());
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns a floating-point number.
   *
   * @return the number
   */
  public double asDouble() {
    try {
      open(ValueType.F64);
      return source().get(F64, at());
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns a copy of a list of integers.
   *
   * @return the elements
   */
  public long[] asLongs() {
    try {
      open(ValueType.I64_LIST);
      var copy = new long[arrayLength(8)];
      MemorySegment.copy(source(), U64, at(), copy, 0, copy.length);
      return copy;
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns a copy of a list of floating-point numbers of 64 bits.
   *
   * @return the elements
   */
  public double[] asDoubles() {
    try {
      open(ValueType.F64_LIST);
      var copy = new double[arrayLength(8)];
      MemorySegment.copy(source(), F64, at(), copy, 0, copy.length);
      return copy;
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns a copy of a list of floating-point numbers of 32 bits.
   *
   * @return the elements
   */
  public float[] asFloats() {
    try {
      open(ValueType.F32_LIST);
      var copy = new float[arrayLength(4)];
      MemorySegment.copy(source(), F32, at(), copy, 0, copy.length);
      return copy;
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns a list of strings.
   *
   * @return the elements; the list cannot be changed
   */
  public List<String> asStrings() {
    try {
      open(ValueType.STRING_LIST);
      if (length() == 0) {
        return List.of();
      }
      int count = source().get(U32, at());
      long text = at() + 4 + 4L * count;
      long begin = text;
      var strings = new ArrayList<String>(count);
      for (int i = 0; i < count; i++) {
        long end = text + (source().get(U32, at() + 4 + 4L * i) & 0xFFFFFFFFL);
        strings.add(Text.of(source(), begin, arrayLength(end - begin, 1)));
        begin = end;
      }
      return List.copyOf(strings);
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /**
   * Returns the bytes of the value in place: text in UTF-8, or numbers in little-endian order. A
   * list of strings has the form of {@code docs/formats/snapshot.md}. Does not check the bytes,
   * such as whether a text is UTF-8.
   *
   * <p>The segment is read-only. After the snapshot is closed, an access to it throws {@link
   * IllegalStateException}. The segment of a compressed value is a copy, which stays valid.
   *
   * @return the segment
   */
  public MemorySegment segment() {
    open();
    return source().asSlice(at(), length());
  }

  /**
   * Returns the numbers of a list in place, as {@link #segment} does. Checks that the length is a
   * multiple of that of a number.
   *
   * @param list the requested type, a list of numbers
   * @return the segment; empty for an empty list
   * @throws IllegalArgumentException if {@code list} is not the type of a list of numbers
   */
  public MemorySegment elements(ValueType list) {
    if (!list.isList() || list == ValueType.STRING_LIST || list == ValueType.EMPTY_LIST) {
      throw new IllegalArgumentException("list: expected a list of numbers, found " + list);
    }
    open(list);
    return source().asSlice(at(), length());
  }

  /** Returns a buffer over {@link #elements}. */
  ByteBuffer buffer(ValueType list) {
    try {
      open(list);
      arrayLength(1);
      return source().asSlice(at(), length()).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /** Returns the search for keys whose record is not found by the short path. */
  LineSearch search() {
    if (search == null) {
      search = new LineSearch();
    }
    return search;
  }

  /** Returns an array for a key of a segment, with room for a length. */
  byte[] keyBuffer(int bytes) {
    if (keyBuffer.length < bytes) {
      keyBuffer = new byte[Math.max(bytes, MIN_KEY_BUFFER)];
    }
    return keyBuffer;
  }

  /**
   * Copies the bytes of the value, as {@link #segment} describes them. Allocates nothing, unless
   * the value is compressed. Copies the first bytes of a value that is longer than the rest of the
   * array; {@link #byteLength} is the length of all.
   *
   * @param target the array that receives the bytes
   * @param offset offset in the array
   * @return number of copied bytes
   */
  public int copyTo(byte[] target, int offset) {
    Objects.checkFromIndexSize(offset, 0, target.length);
    try {
      open();
      int count = (int) Math.min(length(), target.length - offset);
      MemorySegment.copy(source(), JAVA_BYTE, at(), target, offset, count);
      return count;
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  /** Checks the form of the value. Returns its length, decompressed. */
  long check() {
    open(type());
    return length();
  }

  /** Checks type and form, and decompresses a compressed value. */
  private void open(ValueType requested) {
    require(requested);
    open();
    var expected = ValueForm.expected(type(), source(), at(), length());
    if (expected != null) {
      throw invalid(expected);
    }
  }

  private void require(ValueType requested) {
    if ((tag & Layout.Record.TYPE_MASK) != requested.code()) {
      var found = type();
      if (found != ValueType.EMPTY_LIST || !requested.isList()) {
        throw SnapshotException.wrongType(file.path, requested, found);
      }
    }
  }

  /** Decompresses a compressed value, if it was not read before. */
  private void open() {
    if (isCompressed() && content == null) {
      try {
        content = MappedFiles.ofContent(file.zstd.content(file, storedAt, storedLength));
      } catch (IllegalStateException | InternalError e) {
        throw Failures.of(e, file);
      }
    }
  }

  /** Returns the segment that contains the value: the file, or the content of a zstd frame. */
  private MemorySegment source() {
    return content == null ? file.bytes : content;
  }

  private long at() {
    return content == null ? storedAt : 0;
  }

  private long length() {
    return content == null ? storedLength : content.byteSize();
  }

  private void requirePresent() {
    if (tag == 0) {
      throw new IllegalStateException("the last lookup with this view found no value");
    }
  }

  private int arrayLength(int elementBytes) {
    return arrayLength(length(), elementBytes);
  }

  private int arrayLength(long bytes, int elementBytes) {
    if (bytes / elementBytes > MAX_ARRAY) {
      throw SnapshotException.unsupported(
          file.path,
          storedAt,
          "a value that fits an array; read a longer one with segment()",
          bytes + " bytes");
    }
    return (int) (bytes / elementBytes);
  }

  private SnapshotException invalid(String expected) {
    return file.corrupt(storedAt, expected, content != null ? "other content" : "other bytes");
  }
}
