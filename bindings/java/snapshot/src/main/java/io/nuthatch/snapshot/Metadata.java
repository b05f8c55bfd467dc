package io.nuthatch.snapshot;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Decodes metadata: pairs of a name and a value. */
final class Metadata {

  private static final int HEAD = 6;
  private static final int MAX_NAME = 255;

  private final byte[] bytes;
  private final ByteBuffer fields;
  private final Path path;
  private final long offset;
  private final Map<String, byte[]> pairs = new LinkedHashMap<>();
  private byte[] lastName = new byte[0];

  private Metadata(byte[] bytes, Path path, long offset) {
    this.bytes = bytes;
    this.fields = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    this.path = path;
    this.offset = offset;
  }

  /**
   * Decodes metadata.
   *
   * @param bytes the bytes
   * @param path the file, for errors
   * @param offset offset of the bytes in the file
   */
  static Map<String, byte[]> decode(byte[] bytes, Path path, long offset) {
    var metadata = new Metadata(bytes, path, offset);
    int at = 0;
    while (at < bytes.length) {
      at = metadata.decodePair(at);
    }
    return Collections.unmodifiableMap(metadata.pairs);
  }

  /** Decodes the pair at an offset. Returns the offset of its end. */
  private int decodePair(int at) {
    check(bytes.length - at >= HEAD, at, "two lengths", "the end of the metadata");
    int nameLength = fields.getShort(at) & 0xFFFF;
    long valueLength = fields.getInt(at + 2) & 0xFFFFFFFFL;
    check(1 <= nameLength && nameLength <= MAX_NAME, at, "a name of 1 to 255 bytes", nameLength);
    long end = (long) at + HEAD + nameLength + valueLength;
    check(end <= bytes.length, at, "a value within the metadata", valueLength + " bytes");
    int nameEnd = at + HEAD + nameLength;
    var name = Arrays.copyOfRange(bytes, at + HEAD, nameEnd);
    var text = text(name, at);
    check(Arrays.compareUnsigned(lastName, name) < 0, at, "names in ascending order", text);
    lastName = name;
    pairs.put(text.toString(), Arrays.copyOfRange(bytes, nameEnd, (int) end));
    return (int) end;
  }

  private CharBuffer text(byte[] name, int at) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(name));
    } catch (CharacterCodingException e) {
      throw SnapshotException.corrupt(path, offset + at, "a name in UTF-8", "other bytes");
    }
  }

  private void check(boolean holds, int at, String expected, Object found) {
    if (!holds) {
      throw SnapshotException.corrupt(path, offset + at, expected, found);
    }
  }
}
