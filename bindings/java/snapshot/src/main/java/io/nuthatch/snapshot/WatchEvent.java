package io.nuthatch.snapshot;

/** An event of a watch. */
public sealed interface WatchEvent {

  /**
   * The watch switched to a new snapshot. Readers get it at their next call of {@link
   * WatchReader#current}.
   *
   * @param snapshot the new snapshot. The watch closes it after it has switched again; use a reader
   *     to keep it open
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
