package io.nuthatch.snapshot;

import static io.nuthatch.snapshot.Layout.U64;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

/**
 * Lookups of many keys at once, in groups: the keys of a group are hashed and their lines read,
 * then their records are read, then their values. The accesses of each step do not depend on each
 * other, so their memory latencies overlap.
 */
final class ManyLookups {

  /** Number of keys in a group: enough to overlap latencies, few enough to stay in the cache. */
  private static final int GROUP = 64;

  private static final long NO_CANDIDATE = -1;

  private final Snapshot snapshot;
  private final long[] hashes = new long[GROUP];
  private final long[] lines = new long[GROUP];
  private final long[] records = new long[GROUP];

  /** Keeps the reads that only fetch memory from being removed. */
  long touched;

  ManyLookups(Snapshot snapshot) {
    this.snapshot = snapshot;
  }

  /** Sets the views to the values of the keys from one index to another. */
  void find(byte[][] keys, ValueView[] views) {
    for (int from = 0; from < keys.length; from += GROUP) {
      int count = Math.min(GROUP, keys.length - from);
      hash(keys, from, count);
      if (snapshot.single == null) {
        findInShards(keys, views, from, count);
      } else {
        find(snapshot.single, keys, views, from, count);
      }
    }
  }

  private void hash(byte[][] keys, int from, int count) {
    for (int i = 0; i < count; i++) {
      var key = keys[from + i];
      hashes[i] = snapshot.hash(key, key.length);
    }
  }

  private void find(SnapshotFile file, byte[][] keys, ValueView[] views, int from, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
      lines[i] = file.homeLine(hashes[i]);
      sum += file.bytes.get(JAVA_BYTE, lines[i]);
    }
    for (int i = 0; i < count; i++) {
      long matches = file.matches(lines[i], hashes[i]);
      records[i] =
          matches == 0 ? NO_CANDIDATE : file.recordAt(lines[i], SnapshotFile.slot(matches));
    }
    for (int i = 0; i < count; i++) {
      sum += file.isWindow(records[i]) ? file.bytes.get(U64, records[i]) : 0;
    }
    touched += sum;
    for (int i = 0; i < count; i++) {
      var key = keys[from + i];
      var view = views[from + i];
      boolean isFound =
          records[i] == NO_CANDIDATE
              ? file.find(key, key.length, hashes[i], view)
              : file.read(
                  file.locateAt(records[i], key, key.length), key, key.length, hashes[i], view);
      if (!isFound) {
        view.clear();
      }
    }
  }

  private void findInShards(byte[][] keys, ValueView[] views, int from, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
      var file = snapshot.shardOf(hashes[i]);
      lines[i] = file.homeLine(hashes[i]);
      sum += file.bytes.get(JAVA_BYTE, lines[i]);
    }
    touched += sum;
    for (int i = 0; i < count; i++) {
      var key = keys[from + i];
      var view = views[from + i];
      if (!snapshot.shardOf(hashes[i]).find(key, key.length, hashes[i], view)) {
        view.clear();
      }
    }
  }
}
