package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.nuthatch.snapshot.WriterOptions.OnDuplicate;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Writing with the native library. */
class SnapshotWriterTest {

  @TempDir Path folder;
  private Path path;

  @BeforeEach
  void setPath() {
    path = folder.resolve("written.nut");
  }

  private void copy(Path from, WriterOptions options) {
    try (var source = Snapshot.open(from);
        var writer = SnapshotWriter.create(path, options)) {
      source.forEach(entry -> writer.insert(entry.key(), entry.value()));
      source.metadata().forEach(writer::setMetadata);
      var summary = writer.finish();
      assertEquals(source.size(), summary.entries());
      assertEquals(source.stats().valueBytes(), summary.valueBytes());
    }
  }

  @Test
  void a_file_that_is_written_again_has_the_same_bytes() throws IOException {
    for (var name : List.of("types", "seed", "keys", "long-values", "shared", "metadata")) {
      var file = Vectors.ROOT.resolve("v1/" + name + ".nut");
      long seed;
      try (var source = Snapshot.open(file)) {
        seed = source.stats().seed();
      }
      copy(file, WriterOptions.defaults().seed(seed));
      assertEquals(-1, Files.mismatch(file, path), name);
    }
  }

  @Test
  void values_can_be_compressed_and_split_into_shards() {
    var file = Vectors.ROOT.resolve("v1/entries-200.nut");
    copy(file, WriterOptions.defaults().compressionLevel(3).shards(3).threads(1));
    try (var source = Snapshot.open(file);
        var written = Snapshot.open(path)) {
      written.verify();
      assertEquals(3, written.stats().shards());
      source.forEach(entry -> assertEquals(entry.value(), written.get(entry.key())));
    }
  }

  @Test
  void values_larger_than_the_buffer_are_written() {
    var large = new double[100_000];
    large[99_999] = -0.0;
    try (var writer = SnapshotWriter.create(path)) {
      writer.insert("small", Value.of(1));
      writer.insert("large", Value.of(large));
      writer.insert("empty", Value.of(new long[0]));
      writer.insert("texts", Value.of(List.of("", "\u00e9", "z")));
      writer.finish();
    }
    try (var written = Snapshot.open(path)) {
      assertArrayEquals(large, written.getDoubles("large"));
      assertEquals(ValueType.EMPTY_LIST, written.typeOf("empty"));
      assertEquals(List.of("", "\u00e9", "z"), written.getStrings("texts"));
    }
  }

  @Test
  void duplicates_are_errors_unless_the_options_choose_one() {
    for (var handling : OnDuplicate.values()) {
      try (var writer =
          SnapshotWriter.create(path, WriterOptions.defaults().onDuplicate(handling))) {
        writer.insert("key", Value.of("first"));
        writer.insert("key", Value.of("last"));
        if (handling == OnDuplicate.ERROR) {
          assertEquals("duplicate", assertThrows(SnapshotException.class, writer::finish).code());
          assertFalse(Files.exists(path));
          continue;
        }
        assertEquals(2, writer.finish().rows());
      }
      try (var written = Snapshot.open(path)) {
        var kept = handling == OnDuplicate.KEEP_FIRST ? "first" : "last";
        assertEquals(kept, written.getString("key"));
      }
    }
  }

  @Test
  void a_key_above_the_limit_is_refused_and_the_writer_stays_usable() {
    var longest = new byte[Layout.MAX_KEY];
    try (var writer = SnapshotWriter.create(path)) {
      writer.insert("before", Value.of(1));
      var e =
          assertThrows(
              SnapshotException.class,
              () -> writer.insert(new byte[Layout.MAX_KEY + 1], Value.of(true)));
      assertEquals("limit", e.code());
      assertEquals(path, e.path());
      assertEquals(
          path + ": key length in bytes: at most 65535, found 65536; split or omit the input",
          e.getMessage());
      var text = "\u00e9".repeat(Layout.MAX_KEY / 2 + 1);
      assertThrows(SnapshotException.class, () -> writer.insert(text, Value.of(true)));
      writer.insert(longest, Value.of(2));
      assertEquals(2, writer.finish().rows());
    }
    try (var written = Snapshot.open(path)) {
      assertEquals(1, written.getLong("before"));
      assertEquals(Value.of(2), written.get(longest));
    }
  }

  @Test
  void metadata_above_a_limit_is_refused_and_the_writer_stays_usable() {
    try (var writer = SnapshotWriter.create(path)) {
      writer.setMetadata("name", "kept");
      for (var name : List.of("", "n".repeat(256))) {
        var e = assertThrows(SnapshotException.class, () -> writer.setMetadata(name, "value"));
        assertEquals("limit", e.code());
      }
      var large = new byte[Layout.MAX_METADATA];
      assertThrows(SnapshotException.class, () -> writer.setMetadata("large", large));
      writer.insert("key", Value.of(1));
      writer.finish();
    }
    try (var written = Snapshot.open(path)) {
      assertEquals(Set.of("name"), written.metadata().keySet());
    }
  }

  @Test
  void a_writer_is_closed_and_leaves_nothing_after_finish_failed() throws IOException {
    var writer = SnapshotWriter.create(path);
    writer.insert("key", Value.of(1));
    writer.insert("key", Value.of(2));
    assertThrows(SnapshotException.class, writer::finish);
    assertThrows(SnapshotClosedException.class, writer::finish);
    assertThrows(SnapshotClosedException.class, () -> writer.insert("key", Value.of(1)));
    writer.close();
    try (var files = Files.list(folder)) {
      assertEquals(List.of(), files.toList());
    }
  }

  @Test
  void options_out_of_range_are_illegal_arguments_that_are_named() {
    var options = WriterOptions.defaults();
    var level = assertThrows(IllegalArgumentException.class, () -> options.compressionLevel(23));
    assertEquals("compressionLevel: expected 0 to 22, found 23", level.getMessage());
    assertThrows(IllegalArgumentException.class, () -> options.shards(-1));
    assertThrows(IllegalArgumentException.class, () -> options.threads(-1));
    assertThrows(IllegalArgumentException.class, () -> options.memoryBytes(-1));
  }

  @Test
  void a_writer_that_is_closed_before_finish_leaves_nothing() throws IOException {
    var writer = SnapshotWriter.create(path);
    writer.insert("key", Value.of("value"));
    writer.close();
    writer.close();
    try (var files = Files.list(folder)) {
      assertEquals(List.of(), files.toList());
    }
    assertThrows(SnapshotClosedException.class, () -> writer.insert("key", Value.of(1)));
    assertThrows(SnapshotClosedException.class, writer::finish);
  }

  @Test
  void a_folder_that_is_missing_is_an_error_of_the_system() {
    var missing = folder.resolve("missing/file.nut");
    var e = assertThrows(SnapshotException.class, () -> SnapshotWriter.create(missing));
    assertEquals("io", e.code());
    assertTrue(e.getMessage().contains(missing.toString()), e.getMessage());
  }

  @Test
  void text_with_an_unpaired_surrogate_is_refused() {
    try (var writer = SnapshotWriter.create(path)) {
      assertThrows(IllegalArgumentException.class, () -> writer.insert("\ud800", Value.of(1)));
      assertThrows(IllegalArgumentException.class, () -> writer.insert("key", Value.of("\udc00")));
    }
  }
}
