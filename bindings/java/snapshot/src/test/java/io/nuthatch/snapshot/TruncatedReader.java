package io.nuthatch.snapshot;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.TreeMap;

/** A program that reads a file, truncates it to one page, and prints how further reads end. */
final class TruncatedReader {

  private TruncatedReader() {}

  public static void main(String[] arguments) throws IOException {
    var path = Path.of(arguments[0]);
    try (var snapshot = Snapshot.open(path)) {
      var keys = new ArrayList<byte[]>();
      snapshot.forEach(entry -> keys.add(entry.key()));
      int lookups = Integer.parseInt(arguments[1]);
      int found = 0;
      for (int i = 0; i < lookups; i++) {
        found += snapshot.get(keys.get(i % keys.size())) == null ? 0 : 1;
      }
      try (var file = FileChannel.open(path, StandardOpenOption.WRITE)) {
        file.truncate(4096);
      }
      var outcomes = new TreeMap<String, Integer>();
      for (var key : keys) {
        outcomes.merge(outcome(() -> snapshot.get(key)), 1, Integer::sum);
        outcomes.merge(outcome(() -> snapshot.getMany(new byte[][] {key})), 1, Integer::sum);
      }
      outcomes.merge(outcome(snapshot::verify), 1, Integer::sum);
      outcomes.merge(outcome(() -> snapshot.forEach(entry -> {})), 1, Integer::sum);
      System.out.println(found == lookups ? outcomes : "keys are missing");
    }
  }

  private static String outcome(Runnable read) {
    try {
      read.run();
      return "success";
    } catch (SnapshotException e) {
      return e.code();
    } catch (InternalError e) {
      return "InternalError";
    }
  }
}
