package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A folder that a process of Java and others of the command share, all of them at once. */
class SharedFolderTest {

  @TempDir Path folder;

  /** What the command prints; it must end well. */
  private String nuthatch(String... arguments) throws Exception {
    var command = new ArrayList<>(List.of(System.getProperty("nuthatch.binary"), "store"));
    command.addAll(List.of(arguments));
    var child = new ProcessBuilder(command).redirectErrorStream(true).start();
    var output = new String(child.getInputStream().readAllBytes(), UTF_8);
    assertEquals(0, child.waitFor(), output);
    return output;
  }

  @Test
  void java_and_the_command_write_and_read_one_store_at_once() throws Exception {
    var path = folder.resolve("store");
    try (var store = Store.open(path)) {
      var table = store.table("default");
      table.put(bytes("java"), bytes("1")).blockingAwait();
      assertEquals("1\n", nuthatch("get", path.toString(), "java"));
      nuthatch("put", path.toString(), "command", "2");
      assertArrayEquals(bytes("2"), table.get(bytes("command")).blockingGet());
      table.put(bytes("java"), bytes("3")).blockingAwait();
      assertEquals("command\t2\njava\t3\n", nuthatch("scan", path.toString()));
      assertEquals(2, table.count(Range.all()).blockingGet());
    }
  }
}
