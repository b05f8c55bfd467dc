package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.nuthatch.rx.Durability;
import io.nuthatch.rx.Store;
import io.nuthatch.rx.StoreOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Options of a store reach the library in the fields of the header that have their names. */
class OptionsTest {

  @TempDir Path folder;

  private static List<Long> fields(StoreOptions options) {
    try (var arena = Arena.ofConfined()) {
      MemorySegment struct = arena.allocate(Layouts.OPTIONS);
      OpenStore.write(options, struct);
      return Layouts.OPTIONS.memberLayouts().stream()
          .map(field -> field.name().orElseThrow())
          .map(name -> field(struct, name))
          .toList();
    }
  }

  private static long field(MemorySegment struct, String name) {
    long at = Layouts.at(Layouts.OPTIONS, name);
    return name.endsWith("_bytes")
        ? struct.get(JAVA_LONG, at)
        : struct.get(JAVA_INT, at);
  }

  @Test
  void each_option_is_written_to_its_field() {
    var options =
        StoreOptions.defaults()
            .create(false)
            .readOnly(true)
            .durability(Durability.GROUP)
            .tables(7)
            .readers(8)
            .growthPatience(Duration.ofMillis(9))
            .reserve(10)
            .limit(11)
            .allowNetworkFilesystem(true);
    assertEquals(List.of(0L, 1L, 1L, 7L, 8L, 9L, 10L, 11L, 1L, 0L), fields(options));
  }

  @Test
  void a_network_filesystem_is_allowed_only_on_request() {
    var defaults = StoreOptions.defaults();
    var allowing = defaults.allowNetworkFilesystem(true);
    assertEquals(List.of(0L, 0L), fields(defaults).subList(8, 10));
    assertEquals(List.of(1L, 0L), fields(allowing.queueBytes(1 << 20)).subList(8, 10));
    // On a local filesystem it changes nothing.
    try (var store = Store.open(folder.resolve("store"), allowing)) {
      assertEquals(0, store.table("rows").count().blockingGet());
    }
  }
}
