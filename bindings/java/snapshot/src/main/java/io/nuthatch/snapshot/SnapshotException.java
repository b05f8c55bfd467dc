package io.nuthatch.snapshot;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
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
          "not-a-snapshot", "correct the path: this is another kind of file",
          "unsupported", "update the reader, or build the file for this version",
          "corrupt", "copy or build the file again, and check the disk",
          "wrong-type", "request the type that was found, or correct the writer of the value",
          "unreadable", "open it again, and check the disk and which process writes to the file",
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
      String code,
      Path path,
      long offset,
      String expected,
      String found,
      String message,
      Throwable cause) {
    super(message, cause);
    this.code = code;
    this.path = path.toString();
    this.offset = offset;
    this.expected = expected;
    this.found = found;
  }

  static SnapshotException io(Path path, String operation, IOException cause) {
    var message = path + ": " + operation + ": " + reason(cause);
    var expected = "to " + operation + " the file";
    return new SnapshotException(
        "io", path, NO_OFFSET, expected, cause.toString(), message, cause);
  }

  /** Returns why a system call failed; the messages of Java have the path alone. */
  private static String reason(IOException cause) {
    return switch (cause) {
      case NoSuchFileException _ -> "no such file or directory";
      case AccessDeniedException _ -> "permission denied";
      case FileSystemException failed when failed.getReason() != null -> failed.getReason();
      default -> cause.getMessage() == null ? cause.toString() : cause.getMessage();
    };
  }

  static SnapshotException notASnapshot(Path path, String expected, String found) {
    return damage("not-a-snapshot", "not a snapshot", path, 0, expected, found);
  }

  static SnapshotException unsupported(Path path, long offset, String expected, String found) {
    return damage("unsupported", "not supported", path, offset, expected, found);
  }

  static SnapshotException corrupt(Path path, long offset, Object expected, Object found) {
    return damage("corrupt", "damaged file", path, offset, expected.toString(), found.toString());
  }

  private static SnapshotException damage(
      String code, String summary, Path path, long offset, String expected, String found) {
    var message =
        "%s: %s: at byte %d: expected %s, found %s; %s"
            .formatted(summary, path, offset, expected, found, WHAT_TO_DO.get(code));
    return new SnapshotException(code, path, offset, expected, found, message, null);
  }

  static SnapshotException wrongType(Path path, ValueType requested, ValueType found) {
    var message =
        "%s: wrong type: requested %s, found %s; %s"
            .formatted(path, requested, found, WHAT_TO_DO.get("wrong-type"));
    return new SnapshotException(
        "wrong-type", path, NO_OFFSET, requested.toString(), found.toString(), message, null);
  }

  static SnapshotException unreadable(Path path, InternalError cause) {
    var message =
        path
            + ": the file was truncated or could not be read while it was mapped; "
            + WHAT_TO_DO.get("unreadable");
    return new SnapshotException(
        "unreadable",
        path,
        NO_OFFSET,
        "a file that can be read while it is mapped",
        "a page that is missing or that the device failed to read",
        message,
        cause);
  }

  /** Returns the exception for an error of the native library, whose message may have the path. */
  static SnapshotException ofWriter(String code, Path path, String message) {
    var text = message.contains(path.toString()) ? message : path + ": " + message;
    var action = WHAT_TO_DO.get(code);
    if (action != null) {
      text += "; " + action;
    }
    return new SnapshotException(
        code, path, NO_OFFSET, "to write the snapshot", message, text, null);
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
   * Returns what was expected; for {@code wrong-type}, the requested type. For a checksum, a length
   * or a count, the value in the file.
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
