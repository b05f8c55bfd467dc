package io.nuthatch.snapshot;

import io.nuthatch.snapshot.library.LibraryException;
import io.nuthatch.snapshot.library.WriterFunctions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Writes a snapshot with the native library {@code libnuthatch}, the only class that needs it. The
 * library is searched at the path of the system property {@code nuthatch.library}, then beside the
 * jar, then in the jar.
 *
 * <p>
 *
 * {@snippet :
 * try (var writer = SnapshotWriter.create(Path.of("users.nut"))) {
 *   writer.insert("user:1.name", Value.of("Ada"));
 *   writer.setMetadata("source", "crm");
 *   writer.finish();
 * }
 * }
 *
 * <p>Rows can be added in any order, and by several threads. A file at the path is replaced by
 * {@link #finish}; until then, the rows are in memory and in temporary files in the same folder.
 *
 * <p>Methods throw {@link SnapshotException} with the codes {@code io}, {@code duplicate}, {@code
 * limit} and {@code not-durable}. A call of {@code insert} or {@code setMetadata} that throws
 * {@link IllegalArgumentException} or the code {@code limit} adds nothing, and the writer can still
 * be used. After another exception, close the writer: rows are passed to the library in groups, so
 * a later call can throw the exception of a row. Calls after {@link #finish} and {@link #close}
 * throw {@link SnapshotClosedException}.
 */
public final class SnapshotWriter implements AutoCloseable {

  private static final long BUFFER_BYTES = 256 << 10;
  private static final long CLOSED = 0;

  private final Path path;
  private final Arena arena = Arena.ofShared();
  private final PackedRows rows = new PackedRows(arena.allocate(BUFFER_BYTES, 8));

  /** The handle of the library, or {@link #CLOSED}. */
  private long handle;

  private SnapshotWriter(Path path, WriterOptions options) {
    this.path = path;
    try (var confined = Arena.ofConfined()) {
      var utf8 = path.toString().getBytes(StandardCharsets.UTF_8);
      handle = WriterFunctions.create(utf8, struct(options, confined));
    } catch (LibraryException e) {
      arena.close();
      throw SnapshotException.ofWriter(e.code(), path, e.getMessage());
    } catch (Throwable e) {
      arena.close();
      throw e;
    }
  }

  /**
   * Starts a snapshot with the default options.
   *
   * @param path the path at which it is published
   * @return the writer
   * @throws SnapshotException with the code {@code io} if the temporary file cannot be created
   * @throws LinkageError if the native library cannot be loaded
   */
  public static SnapshotWriter create(Path path) {
    return create(path, WriterOptions.defaults());
  }

  /**
   * Starts a snapshot.
   *
   * @param path the path at which it is published
   * @param options the options
   * @return the writer
   * @throws SnapshotException with the code {@code io} if the temporary file cannot be created
   * @throws LinkageError if the native library cannot be loaded
   */
  public static SnapshotWriter create(Path path, WriterOptions options) {
    return new SnapshotWriter(path, options);
  }

  private static MemorySegment struct(WriterOptions options, Arena arena) {
    var struct = arena.allocate(WriterFunctions.OPTIONS);
    struct.set(ValueLayout.JAVA_INT, 0, options.onDuplicate().ordinal());
    struct.set(ValueLayout.JAVA_INT, 4, options.compressionLevel() > 0 ? 1 : 0);
    struct.set(ValueLayout.JAVA_INT, 8, options.compressionLevel());
    struct.set(ValueLayout.JAVA_INT, 12, options.threads());
    struct.set(ValueLayout.JAVA_LONG, 16, options.memoryBytes());
    struct.set(ValueLayout.JAVA_LONG, 24, options.seed());
    struct.set(ValueLayout.JAVA_INT, 32, options.shards());
    return struct;
  }

  /**
   * Adds a row. Copies key and value.
   *
   * @param key the key, at most 65,535 bytes
   * @param value the value
   * @throws SnapshotException with the code {@code limit} if the key or the value is too long, and
   *     {@code io} if rows cannot be written to a temporary file
   * @throws IllegalArgumentException if a text of the value has an unpaired surrogate
   */
  public synchronized void insert(byte[] key, Value value) {
    requireOpen();
    if (key.length > Layout.MAX_KEY) {
      var message =
          "key length in bytes: at most %d, found %d".formatted(Layout.MAX_KEY, key.length);
      throw SnapshotException.ofWriter("limit", path, message);
    }
    var row = PackedRows.Row.of(key, value);
    if (!rows.hasRoom(row)) {
      flush();
    }
    if (rows.hasRoom(row)) {
      rows.add(row);
      return;
    }
    try (var confined = Arena.ofConfined()) {
      var single = new PackedRows(confined.allocate(row.packedLength(), 8));
      single.add(row);
      insertRows(single);
    }
  }

  /**
   * Adds a row.
   *
   * @param key the key, at most 65,535 bytes in UTF-8
   * @param value the value
   * @throws SnapshotException with the code {@code limit} if the key or the value is too long, and
   *     {@code io} if rows cannot be written to a temporary file
   * @throws IllegalArgumentException if the key or a text of the value has an unpaired surrogate
   */
  public void insert(String key, Value value) {
    insert(utf8("key", key), value);
  }

  private static byte[] utf8(String what, String text) {
    var bytes = Utf8.key(text);
    if (bytes == null) {
      throw new IllegalArgumentException(what + ": expected text without unpaired surrogates");
    }
    return bytes;
  }

  private void flush() {
    if (!rows.isEmpty()) {
      insertRows(rows);
      rows.clear();
    }
  }

  private void insertRows(PackedRows some) {
    try {
      WriterFunctions.insertRows(handle, some.rows());
    } catch (LibraryException e) {
      throw SnapshotException.ofWriter(e.code(), path, e.getMessage());
    }
  }

  /**
   * Sets a value of the metadata. Replaces an earlier value of the name. All metadata has at most 1
   * MiB.
   *
   * @param name the name, 1 to 255 bytes in UTF-8
   * @param value the value
   */
  public synchronized void setMetadata(String name, byte[] value) {
    requireOpen();
    try {
      WriterFunctions.setMetadata(handle, utf8("name", name), value);
    } catch (LibraryException e) {
      throw SnapshotException.ofWriter(e.code(), path, e.getMessage());
    }
  }

  /**
   * Sets a value of the metadata, as {@link #setMetadata(String, byte[])}.
   *
   * @param name the name, 1 to 255 bytes in UTF-8
   * @param value the value
   */
  public void setMetadata(String name, String value) {
    setMetadata(name, utf8("value", value));
  }

  /**
   * Writes the file, syncs it and publishes it at its path. Closes the writer, also if it fails:
   * then the path is unchanged, except that after the code {@code not-durable} the new file is
   * published, but a power failure may restore the old one.
   *
   * @return the summary
   */
  public synchronized WriteSummary finish() {
    requireOpen();
    try {
      flush();
    } catch (Throwable e) {
      close();
      throw e;
    }
    long finished = handle;
    handle = CLOSED;
    try (var confined = Arena.ofConfined()) {
      var struct = confined.allocate(WriterFunctions.SUMMARY);
      WriterFunctions.finish(finished, struct);
      return new WriteSummary(
          struct.getAtIndex(ValueLayout.JAVA_LONG, 0),
          struct.getAtIndex(ValueLayout.JAVA_LONG, 1),
          struct.getAtIndex(ValueLayout.JAVA_LONG, 2),
          struct.getAtIndex(ValueLayout.JAVA_LONG, 3),
          struct.getAtIndex(ValueLayout.JAVA_LONG, 4),
          struct.getAtIndex(ValueLayout.JAVA_LONG, 5));
    } catch (LibraryException e) {
      throw SnapshotException.ofWriter(e.code(), path, e.getMessage());
    } finally {
      arena.close();
    }
  }

  /**
   * Abandons the snapshot and removes its temporary files. Has no effect after {@link #finish} or
   * another call.
   */
  @Override
  public synchronized void close() {
    if (handle == CLOSED) {
      return;
    }
    long abandoned = handle;
    handle = CLOSED;
    arena.close();
    try {
      WriterFunctions.abandon(abandoned);
    } catch (LibraryException e) {
      throw SnapshotException.ofWriter(e.code(), path, e.getMessage());
    }
  }

  private void requireOpen() {
    if (handle == CLOSED) {
      throw new SnapshotClosedException("the writer of " + path, null);
    }
  }
}
