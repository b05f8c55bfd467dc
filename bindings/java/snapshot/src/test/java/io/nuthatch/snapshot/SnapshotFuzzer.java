package io.nuthatch.snapshot;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;

/**
 * Opens any bytes as a snapshot and reads all of it. Only the documented errors may occur. The
 * fuzzer Jazzer calls {@link #fuzzerTestOneInput}; {@code MutationTest} calls {@link #read}.
 */
public final class SnapshotFuzzer {

  private static final Set<String> OPENING = Set.of("not-a-snapshot", "unsupported", "corrupt");
  private static final int MAX_KEYS = 50;

  private static Path file;

  private SnapshotFuzzer() {}

  /** Called by Jazzer. */
  public static void fuzzerTestOneInput(byte[] input) throws IOException {
    if (file == null) {
      file = Files.createTempFile("fuzz", ".nut");
      file.toFile().deleteOnExit();
    }
    Files.write(file, input);
    read(file);
  }

  /** Reads a file in every way. Returns whether it opens. */
  static boolean read(Path path) {
    try (var snapshot = Snapshot.open(path)) {
      allowCorrupt(snapshot::verify);
      allowCorrupt(snapshot::metadata);
      snapshot.stats();
      snapshot.getString("key");
      readEntries(snapshot);
      return true;
    } catch (SnapshotException e) {
      boolean isMissingShard = e.code().equals("io") && e.path().toString().endsWith(".shard");
      if (!OPENING.contains(e.code()) && !isMissingShard && !isOfLookup(e)) {
        throw e;
      }
      return false;
    }
  }

  private static void readEntries(Snapshot snapshot) {
    var cursor = snapshot.cursor();
    int keys = 0;
    boolean hasNext = true;
    while (hasNext && keys < MAX_KEYS) {
      keys++;
      try {
        hasNext = cursor.next();
        if (hasNext) {
          readKey(snapshot, cursor.key());
        }
      } catch (SnapshotException e) {
        requireCorrupt(e);
      }
    }
  }

  private static void readKey(Snapshot snapshot, byte[] key) {
    allowCorrupt(() -> snapshot.get(key));
    allowCorrupt(() -> snapshot.getMany(new byte[][] {key, key}));
    allowCorrupt(() -> snapshot.typeOf(key));
    try {
      snapshot.getString(key);
    } catch (SnapshotException e) {
      if (!isOfLookup(e)) {
        throw e;
      }
    }
  }

  private static boolean isOfLookup(SnapshotException e) {
    return e.code().equals("corrupt") || e.code().equals("wrong-type");
  }

  private static void allowCorrupt(Runnable operation) {
    try {
      operation.run();
    } catch (SnapshotException e) {
      requireCorrupt(e);
    }
  }

  private static void requireCorrupt(SnapshotException e) {
    if (!e.code().equals("corrupt")) {
      throw e;
    }
  }
}
