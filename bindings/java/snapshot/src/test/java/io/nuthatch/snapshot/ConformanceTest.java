package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.nuthatch.snapshot.hash.Xxh3;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** The files and tables that the readers of all languages are tested with. */
class ConformanceTest {

  private static final PassedCases CASES = new PassedCases();

  @TempDir Path folder;

  @AfterAll
  static void writeNames() throws IOException {
    CASES.write();
  }

  @TestFactory
  Stream<DynamicTest> good_files_have_the_expected_entries() {
    return Vectors.files(".nut").stream().map(file -> CASES.test(file, () -> checkGood(file)));
  }

  private static void checkGood(String file) {
    var document = Vectors.document(file);
    try (var snapshot = Snapshot.open(Vectors.ROOT.resolve(file))) {
      assertEquals(document.get("stats"), statsOf(snapshot.stats()));
      assertEquals(document.getOrDefault("shards", 0L), (long) snapshot.stats().shards());
      checkMetadata(snapshot, Json.object(document.getOrDefault("metadata", Map.of())));
      snapshot.verify();
      checkEntries(snapshot, document);
    }
  }

  private static Map<String, Object> statsOf(Stats stats) {
    var json = new LinkedHashMap<String, Object>();
    json.put("file_bytes", stats.fileBytes());
    json.put("entries", stats.entries());
    json.put("key_bytes", stats.keyBytes());
    json.put("value_bytes", stats.valueBytes());
    json.put("stored_value_bytes", stats.storedValueBytes());
    json.put("shared_entries", stats.sharedEntries());
    json.put("compressed_entries", stats.compressedEntries());
    json.put("dictionary_bytes", stats.dictionaryBytes());
    json.put("index_bytes", stats.indexBytes());
    json.put("data_bytes", stats.dataBytes());
    json.put("partitions", stats.partitions());
    json.put("lines", stats.lines());
    json.put("max_probe", (long) stats.maxProbe());
    json.put("seed", stats.seed());
    var byType = new LinkedHashMap<String, Object>();
    stats.entriesByType().forEach((type, count) -> byType.put(type.toString(), count));
    json.put("entries_by_type", byType);
    return json;
  }

  private static void checkMetadata(Snapshot snapshot, Map<String, Object> expected) {
    var metadata = snapshot.metadata();
    assertEquals(List.copyOf(expected.keySet()), List.copyOf(metadata.keySet()));
    expected.forEach(
        (name, value) -> assertArrayEquals(Vectors.metadataValue(value), metadata.get(name), name));
  }

  /** Checks that iteration and all kinds of lookups return the expected entries. */
  private static void checkEntries(Snapshot snapshot, Map<String, Object> document) {
    var entries = Json.list(document.get("entries"));
    assertEquals(entries.size(), snapshot.size());
    var found = snapshot.iterator();
    var keys = new byte[entries.size()][];
    var expected = new String[entries.size()];
    for (int i = 0; i < keys.length; i++) {
      var entry = Json.object(entries.get(i));
      keys[i] = Vectors.key(entry.get("key"));
      expected[i] = Vectors.describe((String) entry.get("type"), entry.get("value"));
      var iterated = found.next();
      assertArrayEquals(keys[i], iterated.key());
      assertEquals(expected[i], Vectors.describe(iterated.value()));
      assertEquals(expected[i], Vectors.describe(snapshot.get(keys[i])));
    }
    assertFalse(found.hasNext());
    var many = snapshot.getMany(keys);
    for (int i = 0; i < keys.length; i++) {
      assertEquals(expected[i], Vectors.describe(many[i]));
    }
    for (var absent : Json.list(document.get("absent"))) {
      var key = Vectors.key(absent);
      assertNull(snapshot.get(key));
      assertFalse(snapshot.contains(key));
      assertNull(snapshot.getMany(new byte[][] {key})[0]);
    }
  }

  @TestFactory
  Stream<DynamicTest> bad_files_have_the_expected_errors() throws IOException {
    Vectors.copyShards(folder);
    return Vectors.table("bad/cases.json").stream()
        .map(bad -> CASES.test(bad.get("file") + ": " + bad.get("name"), () -> checkBad(bad)));
  }

  private void checkBad(Map<String, Object> bad) throws IOException {
    var path = folder.resolve("case.nut");
    Files.deleteIfExists(path);
    Files.write(path, Vectors.damaged(bad));
    var document = Vectors.document((String) bad.getOrDefault("of", bad.get("file")));
    var opened = errorOf(() -> Snapshot.open(path).close());
    assertEquals(bad.get("open"), opened, "open");
    if (opened != null) {
      return;
    }
    try (var snapshot = Snapshot.open(path)) {
      assertEquals(bad.get("verify"), errorOf(snapshot::verify), "verify");
      if (bad.get("verify") == null) {
        checkEntries(snapshot, document);
        return;
      }
      checkLookupsEnd(snapshot, document);
      var iteration = errorOf(() -> snapshot.forEach(entry -> {}));
      if (bad.get("get") instanceof Map<?, ?> get) {
        var answer = lookup(snapshot, Vectors.key(get.get("key")));
        assertEquals(get.get("answer"), answer);
        assertTrue(
            !answer.equals("corrupt") || iteration != null && iteration.containsValue("corrupt"));
      }
    }
  }

  private static void checkLookupsEnd(Snapshot snapshot, Map<String, Object> document) {
    for (var entry : Json.list(document.get("entries"))) {
      var key = Vectors.key(Json.object(entry).get("key"));
      var answer = lookup(snapshot, key);
      var many = errorOf(() -> snapshot.getMany(new byte[][] {key}));
      assertEquals(answer.equals("corrupt"), many != null);
    }
    Json.list(document.get("absent")).forEach(key -> lookup(snapshot, Vectors.key(key)));
  }

  private static String lookup(Snapshot snapshot, byte[] key) {
    try {
      return snapshot.get(key) == null ? "absent" : "value";
    } catch (SnapshotException e) {
      assertEquals("corrupt", e.code());
      return "corrupt";
    }
  }

  /** Returns the error of an operation in the form of the cases, or {@code null}. */
  private static Map<String, Object> errorOf(Runnable operation) {
    try {
      operation.run();
      return null;
    } catch (SnapshotException e) {
      assertTrue(e.getMessage().contains(e.expected()), e.getMessage());
      return Map.of("code", e.code(), "offset", e.offset().orElse(-1));
    }
  }

  @TestFactory
  Stream<DynamicTest> keys_have_the_expected_hashes() {
    return Vectors.table("hashes.json").stream()
        .map(row -> CASES.test((String) row.get("name"), () -> checkHash(row)));
  }

  private static void checkHash(Map<String, Object> row) {
    var key = Vectors.key(row.get("key"));
    long seed = Long.parseUnsignedLong((String) row.get("seed"), 16);
    var found = HexFormat.of().toHexDigits(Xxh3.hash(key, key.length, seed));
    assertEquals(row.get("hash"), found);
  }

  @TestFactory
  Stream<DynamicTest> typed_lookups_return_the_value_or_name_its_type() {
    return Vectors.table("typed.json").stream()
        .map(row -> CASES.test((String) row.get("name"), () -> checkTyped(row)));
  }

  private static void checkTyped(Map<String, Object> row) {
    var key = Vectors.key(row.get("key"));
    var type = (String) row.get("as");
    try (var snapshot = Snapshot.open(Vectors.ROOT.resolve((String) row.get("file")))) {
      var found = getTyped(snapshot, key, type);
      if (row.containsKey("value")) {
        var value = row.get("value");
        boolean isEmpty = value instanceof List<?> list && list.isEmpty();
        var expected = isEmpty ? type + " []" : Vectors.describe(type, value);
        assertEquals(expected, found == null ? null : Vectors.describe(found));
        assertEquals(row.get("found"), null);
      } else {
        assertEquals(true, row.get("absent"));
        assertNull(found);
      }
    } catch (SnapshotException e) {
      assertEquals("wrong-type", e.code());
      assertEquals(row.get("found"), e.found());
      assertEquals(type, e.expected());
    }
  }

  private static Value getTyped(Snapshot snapshot, byte[] key, String type) {
    return switch (type) {
      case "bytes" -> valueOf(snapshot.getBytes(key), Value.Bytes::new);
      case "string" -> valueOf(snapshot.getString(key), Value.Text::new);
      case "bool" -> valueOf(snapshot.getBoolean(key), Value.Bool::new);
      case "i64" -> valueOf(snapshot.getLong(key), Value.I64::new);
      case "f64" -> valueOf(snapshot.getDouble(key), Value.F64::new);
      case "list of i64" -> valueOf(snapshot.getLongs(key), Value.I64List::new);
      case "list of f64" -> valueOf(snapshot.getDoubles(key), Value.F64List::new);
      case "list of f32" -> valueOf(snapshot.getFloats(key), Value.F32List::new);
      default -> valueOf(snapshot.getStrings(key), Value.TextList::new);
    };
  }

  private static <T> Value valueOf(T found, java.util.function.Function<T, Value> of) {
    return found == null ? null : of.apply(found);
  }

  @TestFactory
  Stream<DynamicTest> a_watch_follows_the_files_at_a_path() {
    return Vectors.table("watch.json").stream()
        .map(row -> CASES.test((String) row.get("name"), () -> checkWatch(row)));
  }

  private void checkWatch(Map<String, Object> row) throws IOException {
    var watched = Files.createTempDirectory(folder, "watch");
    Vectors.copyShards(watched);
    var path = watched.resolve("watched.nut");
    var steps = Json.list(row.get("steps")).stream().map(Json::object).toList();
    change(path, steps.getFirst());
    var options =
        WatchOptions.defaults()
            .interval(Duration.ZERO)
            .open(OpenOptions.defaults().verify((Boolean) row.get("verify")));
    try (var watch = Watch.open(path, options);
        var reader = watch.reader()) {
      for (var step : steps) {
        if (step != steps.getFirst()) {
          change(path, step);
          watch.refresh();
        }
        checkStep(watch.status(), reader.current(), step);
      }
    }
  }

  private static void change(Path path, Map<String, Object> step) throws IOException {
    if (step.get("publish") instanceof String file) {
      var copy = path.resolveSibling("copy.nut");
      Files.copy(Vectors.ROOT.resolve(file), copy, StandardCopyOption.REPLACE_EXISTING);
      Files.move(copy, path, StandardCopyOption.ATOMIC_MOVE);
    } else if (step.containsKey("remove")) {
      Files.delete(path);
    }
  }

  private static void checkStep(WatchStatus status, Snapshot current, Map<String, Object> step) {
    assertEquals(step.get("entries"), current.size());
    assertEquals(step.get("switched"), status.switched());
    assertEquals(step.get("rejected"), status.rejected());
    assertEquals(step.get("error"), status.error().isPresent());
    try (var expected = Snapshot.open(Vectors.ROOT.resolve((String) step.get("current")))) {
      assertEquals(expected.stats(), current.stats());
    }
  }

  @TestFactory
  Stream<DynamicTest> a_file_beyond_four_gibibytes_is_read() {
    var large = Json.object(Vectors.json("large.json"));
    return Stream.of(CASES.test((String) large.get("name"), () -> checkLarge(large)));
  }

  private void checkLarge(Map<String, Object> large) throws IOException {
    var path = folder.resolve("large.nut");
    try (var file = new RandomAccessFile(path.toFile(), "rw")) {
      file.setLength((Long) large.get("length"));
      for (var patch : Vectors.patches(large)) {
        file.seek((Long) patch.get("at"));
        file.write(HexFormat.of().parseHex((String) patch.get("hex")));
      }
    }
    try (var snapshot = Snapshot.open(path)) {
      checkEntries(snapshot, large);
    }
  }
}
