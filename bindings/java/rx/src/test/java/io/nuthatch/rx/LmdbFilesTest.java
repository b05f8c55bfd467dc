package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.reactivex.rxjava3.core.Flowable;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.lmdbjava.ByteBufferProxy;
import org.lmdbjava.DbiFlags;
import org.lmdbjava.Env;

/** Files of a store are LMDB's: lmdbjava reads them when nobody has the store open. */
class LmdbFilesTest {

  @TempDir Path folder;

  /**
   * What lmdbjava reads in a process of its own: within one process the locks of two builds of LMDB
   * do not see each other, and the second one would undo those of the first.
   */
  private String readElsewhere() throws Exception {
    var path =
        System.getProperty("jdk.module.path", "") + ":" + System.getProperty("java.class.path");
    var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    var output = folder.resolve("output").toFile();
    var child =
        new ProcessBuilder(
                java,
                "--enable-native-access=ALL-UNNAMED",
                "--add-opens=java.base/java.nio=ALL-UNNAMED",
                "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                "-cp",
                path,
                LmdbReader.class.getName(),
                folder.resolve("store").toString())
            .redirectErrorStream(true)
            .redirectOutput(output)
            .start();
    child.waitFor();
    return Files.readString(output.toPath());
  }

  @Test
  void lmdbjava_reads_what_was_written_once_the_store_is_closed_and_not_before() throws Exception {
    try (var store = Store.open(folder.resolve("store"))) {
      var rows = Flowable.range(0, 500).map(i -> Row.of("key%03d".formatted(i), "v" + i));
      store.table("rows").put(rows).blockingForEach(Ack::orThrow);
      var refused = readElsewhere();
      assertTrue(refused.contains("VersionMismatchException") && !refused.contains("key"), refused);
    }
    var found = readElsewhere();
    for (int i = 0; i < 500; i++) {
      assertTrue(found.contains("key%03d=v%d%n".formatted(i, i)), found);
    }
  }

  @Test
  void a_store_opens_what_lmdbjava_wrote() throws Exception {
    var path = Files.createDirectory(folder.resolve("store"));
    try (var env = Env.create(ByteBufferProxy.PROXY_SAFE).setMaxDbs(1).open(path.toFile())) {
      var key = ByteBuffer.allocateDirect(1).put((byte) 'a').flip();
      env.openDbi("rows", DbiFlags.MDB_CREATE).put(key, key.duplicate());
    }
    try (var store = Store.open(path)) {
      assertEquals("a", new String(store.table("rows").get(bytes("a")).blockingGet()));
    }
  }
}
