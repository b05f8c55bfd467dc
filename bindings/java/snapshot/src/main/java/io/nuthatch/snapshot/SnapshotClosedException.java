package io.nuthatch.snapshot;

/** The snapshot or watch was closed before or during the operation. */
public final class SnapshotClosedException extends IllegalStateException {

  private static final long serialVersionUID = 1L;

  SnapshotClosedException(String what, Throwable cause) {
    super(what + " is closed: open it again, or close it after its last use", cause);
  }
}
