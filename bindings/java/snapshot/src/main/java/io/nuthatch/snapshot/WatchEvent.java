package io.nuthatch.snapshot;

/** An event of a watch. */
public sealed interface WatchEvent {

  /**
   * The watch switched to a new snapshot. Readers get it at their next call.
   *
   * @param snapshot the new snapshot; the watch closes it
   */
  record Switched(Snapshot snapshot) implements WatchEvent {}

  /**
   * The newest file cannot be opened or does not verify. Readers keep the snapshot that they have.
   * Not reported again while the error stays the same.
   *
   * @param error the error
   */
  record Rejected(SnapshotException error) implements WatchEvent {}
}
