package io.nuthatch.snapshot;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.function.Executable;

/** The names of the cases that passed, for the comparison with other languages. */
final class PassedCases {

  private final List<String> names = new ArrayList<>();

  /** Returns a test that adds its name if it passes. */
  DynamicTest test(String name, Executable check) {
    return DynamicTest.dynamicTest(
        name,
        () -> {
          check.execute();
          synchronized (names) {
            names.add(name);
          }
        });
  }

  /** Writes the names to the file that the variable NUTHATCH_CASES names, sorted by bytes. */
  void write() throws IOException {
    var path = System.getenv("NUTHATCH_CASES");
    if (path != null && !path.isEmpty()) {
      names.sort((a, b) -> Arrays.compareUnsigned(utf8(a), utf8(b)));
      Files.write(Path.of(path), names);
    }
  }

  private static byte[] utf8(String name) {
    return name.getBytes(StandardCharsets.UTF_8);
  }
}
