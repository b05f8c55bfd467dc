package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The example of the page for users. */
class ReadmeTest {

  @TempDir Path folder;

  @Test
  void the_example_runs() throws IOException {
    var root = Path.of(System.getProperty("nuthatch.root"));
    var page = Files.readString(root.resolve("bindings/java/snapshot/README.md"));
    int begin = page.indexOf("```java\n") + "```java\n".length();
    var example = folder.resolve("Example.java");
    Files.writeString(example, page.substring(begin, page.indexOf("```", begin)));
    var file = Vectors.ROOT.resolve("v1/types.nut").toString();
    var result = ChildJvm.runSource(example, file);
    assertEquals(0, result.status(), result.output());
    assertTrue(result.output().contains("37 entries\n"), result.output());
  }
}
