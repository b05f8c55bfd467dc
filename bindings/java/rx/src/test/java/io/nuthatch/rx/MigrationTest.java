package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Every snippet of {@code docs/migrating-from-rxlmdb.md} compiles, and runs on a store of its own. */
class MigrationTest {

  private static final String HEAD =
      """
      import io.nuthatch.rx.*;
      import io.reactivex.rxjava3.core.*;
      import java.lang.foreign.*;
      import java.nio.file.*;
      import java.time.*;
      public class Snippet%d {
        public static void run(
            Path folder, LocalStore store, Table users, byte[] a, byte[] b, byte[] d)
            throws Exception {
      %s
        }
      }
      """;

  @TempDir Path folder;

  @Test
  void every_snippet_compiles_and_runs() throws Exception {
    var snippets = snippets();
    assertTrue(snippets.size() >= 20, snippets.size() + " snippets");
    compile(snippets);
    var urls = new URL[] {folder.toUri().toURL()};
    try (var loader = new URLClassLoader(urls, getClass().getClassLoader())) {
      for (int i = 0; i < snippets.size(); i++) {
        if (snippets.get(i).contains("grpc://")) {
          continue; // there is no server here
        }
        run(loader.loadClass("Snippet" + i), Files.createDirectory(folder.resolve("run" + i)));
      }
    }
  }

  private static List<String> snippets() throws Exception {
    var page = Path.of(System.getProperty("nuthatch.root"), "docs/migrating-from-rxlmdb.md");
    var found = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(page));
    var snippets = new ArrayList<String>();
    while (found.find()) {
      snippets.add(found.group(1));
    }
    return snippets;
  }

  private void compile(List<String> snippets) throws Exception {
    var files = new ArrayList<Path>();
    for (int i = 0; i < snippets.size(); i++) {
      var file = folder.resolve("Snippet" + i + ".java");
      files.add(Files.writeString(file, HEAD.formatted(i, snippets.get(i))));
    }
    var path =
        System.getProperty("jdk.module.path", "") + ":" + System.getProperty("java.class.path");
    var javac = Path.of(System.getProperty("java.home"), "bin", "javac").toString();
    var command = new ArrayList<>(List.of(javac, "-proc:none", "-cp", path, "-d", "" + folder));
    files.forEach(file -> command.add(file.toString()));
    var told = folder.resolve("told");
    var compiler =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(told.toFile());
    assertEquals(0, compiler.start().waitFor(), () -> read(told));
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void run(Class<?> snippet, Path within) throws Exception {
    var options = StoreOptions.defaults().durability(Durability.NONE);
    try (var store = Store.open(within.resolve("store"), options)) {
      var users = store.table("users");
      var batch = new Batch();
      for (var key : List.of("a", "b", "c", "d", "e")) {
        batch.put(users, bytes(key), bytes("value of " + key));
      }
      store.write(batch).blockingGet();
      var parameters =
          new Class<?>[] {
            Path.class, LocalStore.class, Table.class, byte[].class, byte[].class, byte[].class
          };
      snippet
          .getMethod("run", parameters)
          .invoke(null, within, store, users, bytes("a"), bytes("b"), bytes("d"));
    }
  }
}
