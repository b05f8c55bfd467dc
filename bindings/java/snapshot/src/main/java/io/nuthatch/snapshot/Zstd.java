package io.nuthatch.snapshot;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.nuthatch.snapshot.zstd.Decompressor;
import io.nuthatch.snapshot.zstd.Frame;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;

/** Decompression of the values of a file. */
final class Zstd {

  /** What a file with compressed values needs. */
  static final String EXPECTED =
      "the library com.github.luben:zstd-jni on the class path or module path (add the module"
          + " com.github.luben.zstd_jni)";

  private static final int DICTIONARY_MAGIC = 0xEC30A437;

  private static final Zstd WITHOUT_DICTIONARY =
      new Zstd(isAvailable() ? Decompressor.of(null) : null);

  /** The decompressor, or {@code null} without the library. */
  private final Decompressor decompressor;

  private Zstd(Decompressor decompressor) {
    this.decompressor = decompressor;
  }

  /** Returns whether the library for zstd can be used. */
  static boolean isAvailable() {
    return Decompressor.isAvailable();
  }

  static Zstd withoutDictionary() {
    return WITHOUT_DICTIONARY;
  }

  static Zstd withDictionary(byte[] dictionary, Path path, Section section) {
    var words = ByteBuffer.wrap(dictionary).order(ByteOrder.LITTLE_ENDIAN);
    if (dictionary.length < 8 || words.getInt(0) != DICTIONARY_MAGIC) {
      throw SnapshotException.corrupt(path, section.offset(), "a zstd dictionary", "other bytes");
    }
    try {
      return new Zstd(Decompressor.of(dictionary));
    } catch (RuntimeException e) {
      throw SnapshotException.corrupt(path, section.offset(), "a zstd dictionary", e.getMessage());
    }
  }

  /**
   * Returns the content of the frame at an offset of a file.
   *
   * @throws SnapshotException with the code {@code corrupt}
   */
  byte[] content(SnapshotFile file, long at, long length) {
    long contentLength = Frame.contentLength(copy(file, at, Math.min(length, Frame.MAX_HEADER)));
    if (contentLength < 0 || contentLength > Layout.MAX_CONTENT) {
      throw file.corrupt(at, "a zstd frame that states at most 16 MiB", describe(contentLength));
    }
    if (length > Frame.maxLength(contentLength)) {
      throw file.corrupt(at, "a zstd frame whose blocks have content", length + " bytes");
    }
    var frame = copy(file, at, length);
    if (!Frame.isComplete(frame)) {
      throw file.corrupt(at, "one complete zstd frame", "no frame, a part, or more than one");
    }
    if (decompressor == null) {
      // A file whose header announces compressed values is not opened without the library.
      throw file.corrupt(at, "no compressed value in a file without flag 1", "one");
    }
    var content = new byte[(int) contentLength];
    var problem = decompressor.decompress(frame, content);
    if (problem != null) {
      throw file.corrupt(at, "a zstd frame of " + contentLength + " bytes of content", problem);
    }
    return content;
  }

  private static String describe(long contentLength) {
    return contentLength < 0 ? "no frame, or no length" : contentLength + " bytes";
  }

  private static byte[] copy(SnapshotFile file, long at, long length) {
    var copy = new byte[(int) length];
    MemorySegment.copy(file.bytes, JAVA_BYTE, at, copy, 0, copy.length);
    return copy;
  }
}
