package io.nuthatch.snapshot;

/**
 * The handle of one thread on the newest snapshot of a {@link Watch}. {@link #current} takes no
 * lock unless the watch has switched: it loads one reference, which changes only with the snapshot.
 */
public final class WatchReader implements AutoCloseable {

  private final Generations generations;

  /** The snapshot of the last call. Set while the generations are locked. */
  Snapshot snapshot;

  WatchReader(Generations generations) {
    this.generations = generations;
    generations.add(this);
  }

  /**
   * Returns the newest snapshot. It stays open until the next call of this method on this reader,
   * or until the reader or the watch is closed. Do not close it. After the watch is closed, returns
   * a closed snapshot.
   *
   * @return the snapshot
   * @throws SnapshotClosedException if the reader is closed
   */
  public Snapshot current() {
    var mine = snapshot;
    if (mine == generations.current()) {
      return mine;
    }
    if (mine == null) {
      throw new SnapshotClosedException("the reader of a watch", null);
    }
    return generations.advance(this);
  }

  /** Releases the snapshot of the reader. A reader that is unreachable releases it, too. */
  @Override
  public void close() {
    generations.remove(this);
  }
}
