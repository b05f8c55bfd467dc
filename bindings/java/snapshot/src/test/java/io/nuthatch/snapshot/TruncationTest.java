package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A file that is truncated or removed while it is mapped. */
class TruncationTest {

  @TempDir Path folder;

  private Path copy(String file) throws IOException {
    return Files.copy(Vectors.ROOT.resolve(file), folder.resolve("copy.nut"));
  }

  @Test
  void reads_of_a_truncated_file_are_unreadable_in_interpreted_code() throws IOException {
    checkTruncated("v1/entries-20000.nut", 1_000, "-Xint");
    checkTruncated("v1/long-values.nut", 100, "-Xint");
  }

  @Test
  void reads_of_a_truncated_file_are_unreadable_in_compiled_code() throws IOException {
    checkTruncated("v1/entries-20000.nut", 100_000, "-XX:-TieredCompilation");
    checkTruncated("v1/long-values.nut", 20_000, "-XX:-TieredCompilation");
    checkTruncated("v1/entries-20000.nut", 100_000, "-XX:TieredStopAtLevel=1");
  }

  /** Checks reads after as many lookups: enough to compile them, unless the code is interpreted. */
  private void checkTruncated(String file, int lookups, String option) throws IOException {
    var path = copy(file);
    var result =
        ChildJvm.run(List.of(option), TruncatedReader.class, path.toString(), "" + lookups);
    assertEquals(0, result.status(), result.output());
    var expected = "\\{(InternalError=\\d+, )?unreadable=\\d+}\\s*";
    assertTrue(result.output().matches(expected), result.output());
    Files.delete(path);
  }

  @Test
  void a_removed_file_stays_readable() throws IOException {
    var path = copy("v1/types.nut");
    try (var snapshot = Snapshot.open(path)) {
      Files.delete(path);
      snapshot.verify();
      assertEquals("a nuthatch", snapshot.getString("string"));
    }
  }

  @Test
  void a_copied_snapshot_is_independent_of_its_file() throws IOException {
    var path = copy("v1/types.nut");
    var options = OpenOptions.defaults().residency(Residency.COPIED);
    try (var snapshot = Snapshot.open(path, options)) {
      try (var file = FileChannel.open(path, StandardOpenOption.WRITE)) {
        file.truncate(0);
      }
      snapshot.verify();
      assertEquals("a nuthatch", snapshot.getString("string"));
    }
  }
}
