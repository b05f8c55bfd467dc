package io.nuthatch.snapshot;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.OptionalLong;

/**
 * An operation on a snapshot failed. A missing key is not an error, and use after {@link
 * Snapshot#close} is a {@link SnapshotClosedException}.
 */
public final class SnapshotException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  private static final Map<String, String> WHAT_TO_DO =
      Map.of(
          "io", "act on the error of the system",
          "not-a-snapshot", "correct the path: this is another kind of file",
          "unsupported", "update the reader, or build the file for this version",
          "corrupt", "copy or build the file again, and check the disk",
          "wrong-type", "request the type that was found, or correct the writer",
          "unreadable", "open the file again; check the disk, and what writes to the file",
          "not-durable", "publish again, or sync the folder, before relying on the file",
          "duplicate", "remove one of the rows, or choose which one is kept",
          "limit", "split or omit the input");

  private static final long NO_OFFSET = -1;

  /** Short name of the error. */
  private final String code;

  /** The path, as text: paths are not serializable. */
  private final String path;

  /** Offset in the file, or {@link #NO_OFFSET}. */
  private final long offset;

  private final String expected;
  private final String found;

  private SnapshotException(
      String code, Path path, long offset, String expected, String found, Throwable cause) {
    super(message(code, path, offset, expected, found), cause);
    this.code = code;
    this.path = path.toString();
    this.offset = offset;
    this.expected = expected;
    this.found = found;
  }

  private static String message(
      String code, Path path, long offset, String expected, String found) {
    var place = offset == NO_OFFSET ? path.toString() : path + ": at byte " + offset;
    return "%s: %s: expected %s, found %s; %s"
        .formatted(code, place, expected, found, WHAT_TO_DO.getOrDefault(code, "correct the call"));
  }

  static SnapshotException io(Path path, String operation, IOException cause) {
    return new SnapshotException(
        "io", path, NO_OFFSET, "to " + operation + " the file", cause.toString(), cause);
  }

  static SnapshotException notASnapshot(Path path, String expected, String found) {
    return new SnapshotException("not-a-snapshot", path, 0, expected, found, null);
  }

  static SnapshotException unsupported(Path path, long offset, String expected, String found) {
    return new SnapshotException("unsupported", path, offset, expected, found, null);
  }

  static SnapshotException corrupt(Path path, long offset, Object expected, Object found) {
    return new SnapshotException(
        "corrupt", path, offset, expected.toString(), found.toString(), null);
  }

  static SnapshotException wrongType(Path path, ValueType requested, ValueType found) {
    return new SnapshotException(
        "wrong-type", path, NO_OFFSET, "a value of type " + requested, found.toString(), null);
  }

  static SnapshotException unreadable(Path path, InternalError cause) {
    return new SnapshotException(
        "unreadable",
        path,
        NO_OFFSET,
        "a file that can be read while it is mapped",
        "a page that is missing or that the device failed to read",
        cause);
  }

  /** Returns the exception for an error of the native library. */
  static SnapshotException ofWriter(String code, Path path, String message) {
    return new SnapshotException(code, path, NO_OFFSET, "to write the snapshot", message, null);
  }

  /**
   * Returns the short name of the error, one of {@code testdata/errors.csv}: {@code io}, {@code
   * not-a-snapshot}, {@code unsupported}, {@code corrupt}, {@code wrong-type} or {@code
   * unreadable}; of a writer, {@code io}, {@code not-durable}, {@code duplicate} or {@code limit}.
   * The cause of {@code io} is an {@link IOException}, such as {@link
   * java.nio.file.NoSuchFileException}, unless the exception is that of a writer.
   *
   * @return the code
   */
  public String code() {
    return code;
  }

  /**
   * Returns the path of the file. In a set, that of the shard or of the manifest.
   *
   * @return the path
   */
  public Path path() {
    return Path.of(path);
  }

  /**
   * Returns the offset of the error in the file, in bytes. Only the codes {@code not-a-snapshot},
   * {@code unsupported} and {@code corrupt} have one.
   *
   * @return the offset
   */
  public OptionalLong offset() {
    return offset == NO_OFFSET ? OptionalLong.empty() : OptionalLong.of(offset);
  }

  /**
   * Returns what was expected. For a checksum, a length or a count, the value in the file.
   *
   * @return the expected value
   */
  public String expected() {
    return expected;
  }

  /**
   * Returns what was found. For a checksum, a length or a count, the value that was computed.
   *
   * @return the found value
   */
  public String found() {
    return found;
  }
}
