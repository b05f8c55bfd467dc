package io.nuthatch.snapshot;

/** Exceptions of memory segments, as those of this package. */
final class Failures {

  private Failures() {}

  /**
   * Returns the exception for a failed access to a file.
   *
   * @param thrown {@link IllegalStateException} after the file was closed, {@link InternalError}
   *     for a page that cannot be read
   * @param file the file, or {@code null} if none was open
   */
  static RuntimeException of(Throwable thrown, SnapshotFile file) {
    if (thrown instanceof SnapshotClosedException closed) {
      return closed;
    }
    if (file == null) {
      if (thrown instanceof Error error) {
        throw error;
      }
      return (RuntimeException) thrown;
    }
    if (thrown instanceof InternalError error) {
      return SnapshotException.unreadable(file.path, error);
    }
    if (file.bytes.scope().isAlive()) {
      return (IllegalStateException) thrown;
    }
    return new SnapshotClosedException("the snapshot " + file.path, thrown);
  }
}
