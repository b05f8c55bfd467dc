package io.nuthatch.rx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Codes are those of the tables that all languages share. */
class StoreExceptionTest {

  private static final Map<String, Class<? extends StoreException>> SOME =
      Map.of(
          "closed", StoreClosedException.class,
          "condition-unmet", ConditionUnmetException.class,
          "fell-behind", FellBehindException.class,
          "corrupt", StoreDamagedException.class,
          "full", StoreFullException.class,
          "expired", StoreUnavailableException.class,
          "length", StoreException.class);

  @Test
  void every_code_makes_an_exception_that_tells_it() throws IOException {
    var folder = Path.of(System.getProperty("nuthatch.root"), "testdata", "store");
    int known = 0;
    for (var table : new String[] {"errors.csv", "statuses.csv"}) {
      for (var line : Files.readAllLines(folder.resolve(table))) {
        var code = line.substring(0, line.indexOf(','));
        var thrown = StoreException.of(code, "why");
        assertEquals(code, thrown.code());
        assertEquals("why", thrown.getMessage());
        if (SOME.containsKey(code)) {
          assertEquals(SOME.get(code), thrown.getClass(), code);
          known++;
        }
      }
    }
    assertTrue(known >= SOME.size(), known + " codes");
    assertNotEquals(StoreClosedException.class, StoreException.of("io", "why").getClass());
  }
}
