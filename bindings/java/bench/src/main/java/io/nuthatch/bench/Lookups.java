package io.nuthatch.bench;

import io.nuthatch.snapshot.Snapshot;
import io.nuthatch.snapshot.ValueView;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.ToLongFunction;

/**
 * Lookups of a million keys in shuffled order, in a snapshot and in its rivals. Prints a JSON
 * object for each system, with the median of its runs. The systems are interleaved run by run. Also
 * measures opening the file that {@code BENCH_OPEN_FILE} names, if it is set.
 */
public final class Lookups {

  /** Number of keys, {@code key_0} with the value {@code val_0} and so on. */
  static final int KEYS = 1_000_000;

  /** Number of keys that one call of a lookup of many keys has. */
  private static final int BATCH = 1_000;

  private static final int WARM_UP_RUNS = 5;
  private static final int RUNS = 7;
  private static final int OPENINGS = 1_001;
  private static final long SHUFFLE_SEED = 42;

  /** Keeps results of lookups from being removed. */
  private static long sum;

  /**
   * The keys in shuffled order.
   *
   * @param texts the keys as text
   * @param bytes the keys as bytes
   * @param batches the bytes in batches
   */
  private record Keys(String[] texts, byte[][] bytes, List<byte[][]> batches) {}

  private Lookups() {}

  /**
   * Runs all systems.
   *
   * @param arguments the path of a snapshot with the keys and values
   */
  public static void main(String[] arguments) throws IOException {
    var keys = shuffledKeys();
    try (var snapshot = Snapshot.open(Path.of(arguments[0]));
        var lmdb = new LmdbRival();
        var chronicle = new ChronicleRival()) {
      var systems = new LinkedHashMap<String, ToLongFunction<Keys>>();
      addSnapshot(systems, snapshot);
      var map = new HashMap<String, String>();
      for (int i = 0; i < KEYS; i++) {
        map.put("key_" + i, "val_" + i);
      }
      systems.put("HashMap get", k -> eachText(k, map::get));
      systems.put("lmdbjava get", k -> eachBytes(k, lmdb::get));
      systems.put("Chronicle Map get", k -> eachText(k, chronicle::get));
      run(systems, keys);
    }
    var file = System.getenv("BENCH_OPEN_FILE");
    if (file != null) {
      print("nuthatch open", "open", measureOpening(Path.of(file)));
    }
  }

  private static List<Double> measureOpening(Path file) throws IOException {
    var times = new ArrayList<Double>();
    for (int i = 0; i < OPENINGS; i++) {
      long begin = System.nanoTime();
      Snapshot.open(file).close();
      times.add((double) (System.nanoTime() - begin));
    }
    return times;
  }

  private static Keys shuffledKeys() {
    var order = new int[KEYS];
    Arrays.setAll(order, i -> i);
    var random = new Random(SHUFFLE_SEED);
    for (int i = KEYS - 1; i > 0; i--) {
      int other = random.nextInt(i + 1);
      int swapped = order[i];
      order[i] = order[other];
      order[other] = swapped;
    }
    var texts = new String[KEYS];
    Arrays.setAll(texts, i -> "key_" + order[i]);
    var bytes = new byte[KEYS][];
    Arrays.setAll(bytes, i -> texts[i].getBytes(StandardCharsets.UTF_8));
    var batches = new ArrayList<byte[][]>();
    for (int i = 0; i < KEYS; i += BATCH) {
      batches.add(Arrays.copyOfRange(bytes, i, i + BATCH));
    }
    return new Keys(texts, bytes, batches);
  }

  private static void addSnapshot(Map<String, ToLongFunction<Keys>> systems, Snapshot snapshot) {
    var view = new ValueView();
    var views = new ValueView[BATCH];
    Arrays.setAll(views, i -> new ValueView());
    systems.put("nuthatch getString(String)", keys -> eachText(keys, snapshot::getString));
    systems.put("nuthatch getString(byte[])", keys -> eachBytes(keys, snapshot::getString));
    systems.put("nuthatch find", keys -> find(snapshot, view, keys));
    systems.put("nuthatch getManyStrings", keys -> getMany(snapshot, keys));
    systems.put("nuthatch findMany", keys -> findMany(snapshot, views, keys));
  }

  /** A lookup by a key of a kind. */
  private interface Get<K> {
    String get(K key);
  }

  private static long eachText(Keys keys, Get<String> system) {
    long length = 0;
    for (var key : keys.texts) {
      length += system.get(key).length();
    }
    return length;
  }

  private static long eachBytes(Keys keys, Get<byte[]> system) {
    long length = 0;
    for (var key : keys.bytes) {
      length += system.get(key).length();
    }
    return length;
  }

  private static long find(Snapshot snapshot, ValueView view, Keys keys) {
    long length = 0;
    for (var key : keys.bytes) {
      length += snapshot.find(key, view) ? view.byteLength() : 0;
    }
    return length;
  }

  private static long getMany(Snapshot snapshot, Keys keys) {
    long length = 0;
    for (var batch : keys.batches) {
      for (var value : snapshot.getManyStrings(batch)) {
        length += value.length();
      }
    }
    return length;
  }

  private static long findMany(Snapshot snapshot, ValueView[] views, Keys keys) {
    long length = 0;
    for (var batch : keys.batches) {
      snapshot.findMany(batch, views);
      for (var view : views) {
        length += view.byteLength();
      }
    }
    return length;
  }

  private static void run(Map<String, ToLongFunction<Keys>> systems, Keys keys) {
    var times = new HashMap<String, List<Double>>();
    for (int run = 0; run < WARM_UP_RUNS + RUNS; run++) {
      for (var system : systems.entrySet()) {
        long begin = System.nanoTime();
        sum += system.getValue().applyAsLong(keys);
        double nanos = (System.nanoTime() - begin) / (double) KEYS;
        if (run >= WARM_UP_RUNS) {
          times.computeIfAbsent(system.getKey(), name -> new ArrayList<>()).add(nanos);
        }
      }
    }
    for (var system : systems.keySet()) {
      print(system, system.contains("Many") ? "get_many" : "get", times.get(system));
    }
  }

  private static void print(String system, String operation, List<Double> times) {
    var sorted = times.stream().sorted().toList();
    System.out.printf(
        "{\"language\": \"java\", \"system\": \"%s\", \"operation\": \"%s\", \"ns\": %.1f,"
            + " \"runs\": %d}%n",
        system, operation, sorted.get(sorted.size() / 2), sorted.size());
  }
}
