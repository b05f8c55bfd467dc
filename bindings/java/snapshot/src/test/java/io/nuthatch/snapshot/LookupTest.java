package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Kinds of keys, views and options that the shared vectors do not have. */
class LookupTest {

  private static final Path TYPES = Vectors.ROOT.resolve("v1/types.nut");

  @TempDir Path folder;

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void keys_can_be_text_arrays_and_segments() {
    try (var snapshot = Snapshot.open(TYPES);
        var arena = Arena.ofConfined()) {
      var expected = new Value.Text("a nuthatch");
      var view = new ValueView();
      assertEquals(expected, snapshot.get("string"));
      assertEquals(expected, snapshot.get(utf8("string")));
      assertEquals(expected, snapshot.get(MemorySegment.ofArray(utf8("string"))));
      var key = arena.allocateFrom("string");
      assertTrue(snapshot.find(key.asSlice(0, key.byteSize() - 1), view));
      assertEquals("a nuthatch", view.asString());
      assertTrue(snapshot.find(utf8("string and more"), 6, view));
      assertEquals("a nuthatch", view.asString());
      assertEquals(ValueType.STRING, snapshot.typeOf("string"));
      assertTrue(snapshot.contains("string"));
    }
  }

  @Test
  void text_with_an_unpaired_surrogate_is_no_key() {
    try (var snapshot = Snapshot.open(TYPES)) {
      assertNotNull(snapshot.get("string"));
      assertNull(snapshot.get("\ud800"));
      assertNull(Utf8.key("string\udc00"));
      assertFalse(snapshot.contains("a\ud800b"));
      assertArrayEquals(utf8("?\ud83d\ude00?"), Utf8.key("?\ud83d\ude00?"));
    }
  }

  @Test
  void keys_that_are_too_long_are_missing() {
    try (var snapshot = Snapshot.open(TYPES)) {
      assertNull(snapshot.get(new byte[Layout.MAX_KEY + 1]));
      assertNull(snapshot.get(MemorySegment.ofArray(new byte[Layout.MAX_KEY + 1])));
    }
  }

  @Test
  void a_wrong_type_names_both_types_and_the_file() {
    try (var snapshot = Snapshot.open(TYPES)) {
      var e = assertThrows(SnapshotException.class, () -> snapshot.getLong("string"));
      assertEquals("wrong-type", e.code());
      assertEquals(TYPES, e.path());
      assertTrue(e.offset().isEmpty());
      assertEquals(
          TYPES
              + ": wrong type: requested i64, found string; request the type that was found, or"
              + " correct the writer of the value",
          e.getMessage());
    }
  }

  @Test
  void a_missing_file_is_named_with_the_reason() {
    var missing = Path.of("missing.nut");
    var e = assertThrows(SnapshotException.class, () -> Snapshot.open(missing));
    assertEquals("io", e.code());
    assertEquals("missing.nut: open: no such file or directory", e.getMessage());
  }

  @Test
  void lists_of_numbers_can_be_read_in_place() {
    try (var snapshot = Snapshot.open(TYPES)) {
      var longs = snapshot.getLongs("list of i64");
      var buffer = snapshot.getLongBuffer(utf8("list of i64"));
      assertTrue(buffer.isReadOnly());
      assertTrue(buffer.isDirect());
      var copy = new long[buffer.remaining()];
      buffer.get(copy);
      assertArrayEquals(longs, copy);
      var segment = snapshot.getSegment(utf8("list of i64"));
      assertTrue(segment.isReadOnly());
      assertEquals(longs[1], segment.get(ValueLayout.JAVA_LONG, 8));
      assertEquals(0, segment.address() % 8);
      assertArrayEquals(longs, snapshot.getLongs("list of i64"));
      assertNull(snapshot.getLongBuffer(utf8("no such key")));
      assertEquals(
          "wrong-type",
          assertThrows(SnapshotException.class, () -> snapshot.getFloatBuffer(utf8("list of i64")))
              .code());
      assertEquals(0, snapshot.getDoubleBuffer(utf8("list of nothing")).remaining());
    }
  }

  @Test
  void a_view_is_reused_by_lookups_and_empty_after_a_missing_key() {
    try (var snapshot = Snapshot.open(TYPES);
        var compressed = Snapshot.open(Vectors.ROOT.resolve("v1/zstd-dictionary.nut"))) {
      var view = new ValueView();
      var cursor = compressed.cursor();
      while (cursor.next()) {
        assertTrue(compressed.find(cursor.key(), view));
        assertEquals(cursor.value().asValue(), view.asValue());
        assertTrue(snapshot.find(utf8("string"), view));
        assertEquals("a nuthatch", view.asString());
        assertEquals(10, view.byteLength());
      }
      assertFalse(snapshot.find(utf8("no such key"), view));
      assertFalse(view.isPresent());
      assertThrows(IllegalStateException.class, view::type);
      assertThrows(IllegalStateException.class, view::asString);
      assertThrows(IllegalStateException.class, view::segment);
      assertThrows(IllegalStateException.class, () -> new ValueView().asLong());
    }
  }

  @Test
  void a_value_can_be_copied_in_parts() {
    try (var snapshot = Snapshot.open(TYPES)) {
      var view = new ValueView();
      assertTrue(snapshot.find(utf8("string"), view));
      var target = new byte[6];
      assertEquals(5, view.copyTo(target, 1));
      assertArrayEquals(utf8("\0a nut"), target);
      assertThrows(IndexOutOfBoundsException.class, () -> view.copyTo(target, 7));
    }
  }

  @Test
  void many_lookups_equal_single_ones_in_any_number() {
    for (var file : List.of("v1/entries-20000.nut", "v1/overflow.nut", "v1/set-7.nut")) {
      try (var snapshot = Snapshot.open(Vectors.ROOT.resolve(file))) {
        var keys = new byte[1 + (int) snapshot.size() / 2 * 2][];
        var cursor = snapshot.cursor();
        for (int i = 0; i < keys.length; i++) {
          keys[i] = i % 2 == 0 || !cursor.next() ? utf8("missing " + i) : cursor.key();
        }
        var views = new ValueView[keys.length];
        Arrays.setAll(views, i -> new ValueView());
        snapshot.findMany(keys, views);
        for (int i = 0; i < keys.length; i++) {
          var expected = snapshot.get(keys[i]);
          assertEquals(expected, views[i].isPresent() ? views[i].asValue() : null);
        }
        assertThrows(
            IndexOutOfBoundsException.class, () -> snapshot.findMany(keys, new ValueView[1]));
      }
    }
  }

  @Test
  void defaults_replace_missing_numbers() {
    try (var snapshot = Snapshot.open(TYPES)) {
      assertEquals(7, snapshot.getLong(utf8("no such key"), 7));
      assertEquals(0.5, snapshot.getDouble(utf8("no such key"), 0.5));
      assertNull(snapshot.getLong("no such key"));
      assertEquals(Long.MIN_VALUE, snapshot.getLong(utf8("i64: least"), 7));
    }
  }

  @Test
  void all_residencies_return_the_same_entries() {
    for (var residency : Residency.values()) {
      var options = OpenOptions.defaults().residency(residency).verify(true);
      try (var snapshot = Snapshot.open(Vectors.ROOT.resolve("v1/set-3.nut"), options);
          var expected = Snapshot.open(TYPES)) {
        expected.forEach(entry -> assertEquals(entry.value(), snapshot.get(entry.key())));
        assertEquals(expected.size(), snapshot.size());
      }
    }
  }

  @Test
  void paths_that_are_no_files_are_errors_of_the_system() throws IOException {
    var pipe = folder.resolve("pipe");
    assertEquals(0, run("mkfifo", pipe.toString()));
    for (var path : List.of(folder, folder.resolve("missing"), pipe)) {
      var e = assertThrows(SnapshotException.class, () -> Snapshot.open(path));
      assertEquals("io", e.code());
      assertEquals(path, e.path());
    }
  }

  private static int run(String... command) throws IOException {
    try {
      return new ProcessBuilder(command).start().waitFor();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void a_set_without_one_of_its_shards_is_an_error_that_names_the_shard() throws IOException {
    Vectors.copyShards(folder);
    var manifest = folder.resolve("set.nut");
    Files.copy(Vectors.ROOT.resolve("v1/set-3.nut"), manifest);
    String missing;
    try (var snapshot = Snapshot.open(manifest)) {
      missing = Manifest.read(manifest).shards().get(1).fileName();
      assertEquals(3, snapshot.stats().shards());
    }
    Files.delete(folder.resolve(missing));
    var e = assertThrows(SnapshotException.class, () -> Snapshot.open(manifest));
    assertEquals("io", e.code());
    assertEquals(folder.resolve(missing), e.path());
  }

  @Test
  void a_set_behind_a_link_in_another_folder_opens_and_its_errors_have_both_paths()
      throws IOException {
    var release = Files.createDirectories(folder.resolve("releases/42"));
    Vectors.copyShards(release);
    Files.copy(Vectors.ROOT.resolve("v1/set-3.nut"), release.resolve("a.nut"));
    var links = Files.createDirectories(folder.resolve("links"));
    Files.createSymbolicLink(links.resolve("middle.nut"), Path.of("../releases/42/a.nut"));
    var link = links.resolve("current.nut");
    Files.createSymbolicLink(link, Path.of("middle.nut"));
    var linkedFolder = Files.createSymbolicLink(folder.resolve("latest"), release);
    for (var path : List.of(link, linkedFolder.resolve("a.nut"))) {
      try (var snapshot = Snapshot.open(path)) {
        snapshot.verify();
        assertEquals(3, snapshot.stats().shards());
        assertEquals(path, snapshot.path());
      }
    }
    var missing = Manifest.read(link).shards().get(1).fileName();
    Files.delete(release.resolve(missing));
    var e = assertThrows(SnapshotException.class, () -> Snapshot.open(link));
    assertEquals("io", e.code());
    assertEquals(release.toRealPath().resolve(missing), e.path());
    Files.writeString(release.resolve("a.nut"), "more", StandardOpenOption.APPEND);
    e = assertThrows(SnapshotException.class, () -> Snapshot.open(link));
    assertEquals("corrupt", e.code());
    assertEquals(link, e.path());
  }

  @Test
  void a_manifest_that_is_longer_than_any_is_refused_without_reading_it() throws IOException {
    var path = folder.resolve("long.nut");
    Files.copy(Vectors.ROOT.resolve("v1/set-1.nut"), path);
    try (var file = new java.io.RandomAccessFile(path.toFile(), "rw")) {
      file.setLength(1L << 40);
    }
    var e = assertThrows(SnapshotException.class, () -> Snapshot.open(path));
    assertEquals("corrupt", e.code());
    assertEquals(16, e.offset().orElseThrow());
  }
}
