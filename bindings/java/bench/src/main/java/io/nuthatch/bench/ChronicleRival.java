package io.nuthatch.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import net.openhft.chronicle.map.ChronicleMap;

/** The keys of {@link Lookups} in a file of Chronicle Map. */
final class ChronicleRival implements AutoCloseable {

  private final Path folder = Files.createTempDirectory("nuthatch-bench-chronicle");
  private final ChronicleMap<String, String> map;

  ChronicleRival() throws IOException {
    // Chronicle sends statistics of its use to a server, unless this is set.
    System.setProperty("chronicle.analytics.disable", "true");
    map =
        ChronicleMap.of(String.class, String.class)
            .entries(Lookups.KEYS)
            .averageKey("key_500000")
            .averageValue("val_500000")
            .createPersistedTo(folder.resolve("map").toFile());
    for (int i = 0; i < Lookups.KEYS; i++) {
      map.put("key_" + i, "val_" + i);
    }
  }

  String get(String key) {
    return map.get(key);
  }

  @Override
  public void close() throws IOException {
    map.close();
    TemporaryFiles.delete(folder);
  }
}
