package io.nuthatch.snapshot;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Arrays;

/** Files that are mapped or read. */
final class MappedFiles {

  /** Maximum number of bytes that one call copies. */
  private static final int COPY_BYTES = 1 << 20;

  private MappedFiles() {}

  /**
   * Maps or copies a file. The segment is read-only and valid while the arena is open.
   *
   * @throws SnapshotException with the code {@code io}
   */
  static MemorySegment map(Path path, Residency residency, Arena arena) {
    try (var channel = open(path)) {
      long length = channel.size();
      if (residency == Residency.COPIED) {
        return copy(channel, length, arena).asReadOnly();
      }
      var mapped = channel.map(MapMode.READ_ONLY, 0, length, arena);
      if (residency == Residency.POPULATED) {
        mapped.load();
      }
      return mapped;
    } catch (IOException e) {
      throw SnapshotException.io(path, "map", e);
    }
  }

  private static MemorySegment copy(FileChannel channel, long length, Arena arena)
      throws IOException {
    var copy = allocate(length, arena);
    long at = 0;
    while (at < length) {
      var part = copy.asSlice(at, Math.min(length - at, COPY_BYTES)).asByteBuffer();
      int count = channel.read(part, at);
      if (count < 0) {
        throw new EOFException("the file was truncated while it was read");
      }
      at += count;
    }
    return copy;
  }

  /** Allocates memory. An error would end the thread of a watch, so it is an exception. */
  private static MemorySegment allocate(long length, Arena arena) throws IOException {
    try {
      return arena.allocate(length, Layout.SECTION_ALIGN);
    } catch (OutOfMemoryError e) {
      throw new IOException("out of memory for a copy of " + length + " bytes", e);
    }
  }

  /**
   * Reads the first bytes of a file: {@code length}, or all if it has fewer. Returns {@code null}
   * if the file does not begin with this magic.
   */
  static byte[] readStart(Path path, long magic, int length) throws IOException {
    try (var in = openStream(path)) {
      var start = in.readNBytes(Long.BYTES);
      if (start.length < Long.BYTES
          || ByteBuffer.wrap(start).order(ByteOrder.LITTLE_ENDIAN).getLong() != magic) {
        return null;
      }
      var rest = in.readNBytes(length - Long.BYTES);
      var bytes = Arrays.copyOf(start, Long.BYTES + rest.length);
      System.arraycopy(rest, 0, bytes, Long.BYTES, rest.length);
      return bytes;
    }
  }

  private static InputStream openStream(Path path) throws IOException {
    return openRegular(path, Files::newInputStream);
  }

  private static FileChannel open(Path path) throws IOException {
    return openRegular(path, file -> FileChannel.open(file, StandardOpenOption.READ));
  }

  /** A way to open a file. */
  private interface Opener<T> {
    T open(Path path) throws IOException;
  }

  private static <T> T openRegular(Path path, Opener<T> opener) throws IOException {
    requireRegular(path);
    return opener.open(path);
  }

  /**
   * Rejects a named pipe: opening it would wait until it has a writer. Queries the file once, since
   * it may be removed at any time.
   */
  private static void requireRegular(Path path) throws IOException {
    if (!Files.readAttributes(path, BasicFileAttributes.class).isRegularFile()) {
      throw new IOException("not a regular file");
    }
  }

  /** Returns a read-only view of a heap array, for decompressed values. */
  static MemorySegment ofContent(byte[] content) {
    return MemorySegment.ofArray(content).asReadOnly();
  }
}
