package io.nuthatch.snapshot;

import java.nio.file.Path;
import java.time.Duration;

/**
 * A reader for {@code scripts/follow_soak}: {@code SoakReader PATH INTERVAL_MS KEYS}.
 *
 * <p>Watches the snapshot at PATH, in which the keys {@code key:0} to {@code key:KEYS-1} all have
 * the number of the generation as text. Prints {@code generation N} when it reads a later one than
 * before. If it finds another value than expected, it prints both and fails. Runs until it is
 * killed.
 */
final class SoakReader {

  /** Milliseconds between two groups of lookups. Six readers share the processors. */
  private static final long PAUSE_MS = 1;

  private SoakReader() {}

  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length != 3) {
      System.err.println("usage: SoakReader PATH INTERVAL_MS KEYS");
      System.exit(2);
    }
    var options =
        WatchOptions.defaults().interval(Duration.ofMillis(Long.parseLong(arguments[1])));
    try (var watch = Watch.open(Path.of(arguments[0]), options);
        var reader = watch.reader()) {
      run(reader, Integer.parseInt(arguments[2]));
    } catch (SnapshotException | IllegalStateException e) {
      System.out.println(e.getMessage());
      System.exit(1);
    }
  }

  /** Reads until standard output is closed. */
  private static void run(WatchReader reader, int keys) throws InterruptedException {
    long last = 0;
    while (!System.out.checkError()) {
      long generation = read(reader.current(), keys);
      if (generation < last) {
        throw new IllegalStateException(
            "key:0: expected " + last + " or more, found " + generation);
      }
      if (generation > last) {
        System.out.println("generation " + generation);
      }
      last = generation;
    }
  }

  /** Returns the generation of a snapshot. */
  private static long read(Snapshot snapshot, int keys) throws InterruptedException {
    long generation = value(snapshot, 0);
    for (int key = 1; key < keys; key++) {
      if (key == keys / 2) {
        // The follower may replace the file here: the snapshot stays readable.
        Thread.sleep(PAUSE_MS);
      }
      long found = value(snapshot, key);
      if (found != generation) {
        throw new IllegalStateException(
            "key:" + key + ": expected " + generation + ", found " + found);
      }
    }
    return generation;
  }

  private static long value(Snapshot snapshot, int key) {
    var text = snapshot.getString("key:" + key);
    if (text == null) {
      throw new IllegalStateException("key:" + key + ": expected a number, found no value");
    }
    return Long.parseLong(text);
  }
}
