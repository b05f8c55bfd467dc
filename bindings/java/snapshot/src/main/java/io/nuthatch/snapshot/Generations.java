package io.nuthatch.snapshot;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/**
 * The snapshot that readers of a watch use, and those that some reader has not left yet. A retired
 * snapshot is closed when no reader has it.
 */
final class Generations {

  /** The newest snapshot. Changes while this object is locked. */
  private volatile Snapshot current;

  private final List<Snapshot> retired = new ArrayList<>();

  /** All readers. A reader that is unreachable has no snapshot. */
  private final List<WeakReference<WatchReader>> readers = new ArrayList<>();

  private boolean isClosed;

  Generations(Snapshot first) {
    current = first;
  }

  Snapshot current() {
    return current;
  }

  /** Replaces the current snapshot. Closes the new one if the watch is closed. */
  synchronized void replace(Snapshot snapshot) {
    if (isClosed) {
      snapshot.close();
      return;
    }
    retired.add(current);
    current = snapshot;
  }

  synchronized void add(WatchReader reader) {
    readers.add(new WeakReference<>(reader));
    reader.snapshot = current;
  }

  synchronized void remove(WatchReader reader) {
    reader.snapshot = null;
    readers.removeIf(reference -> reference.refersTo(reader));
    reclaim();
  }

  /** Moves a reader to the current snapshot. */
  synchronized Snapshot advance(WatchReader reader) {
    reader.snapshot = current;
    return current;
  }

  /** Closes the retired snapshots that no reader has. */
  synchronized void reclaim() {
    readers.removeIf(reference -> reference.refersTo(null));
    retired.removeIf(
        snapshot -> {
          boolean isUnused = readers.stream().noneMatch(reader -> has(reader, snapshot));
          if (isUnused) {
            snapshot.close();
          }
          return isUnused;
        });
  }

  private static boolean has(WeakReference<WatchReader> reference, Snapshot snapshot) {
    var reader = reference.get();
    return reader != null && reader.snapshot == snapshot;
  }

  /** Closes all snapshots. */
  synchronized void close() {
    isClosed = true;
    retired.forEach(Snapshot::close);
    retired.clear();
    current.close();
  }
}
