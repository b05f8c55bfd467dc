package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The library for zstd is optional. */
class WithoutZstdTest {

  private static String open(String file) throws IOException {
    var path = Vectors.ROOT.resolve(file).toString();
    return ChildJvm.run(List.of(), WithoutZstd.class, path).output().strip();
  }

  @Test
  void files_without_compressed_values_need_no_library() throws IOException {
    assertEquals("37", open("v1/types.nut"));
  }

  @Test
  void files_with_compressed_values_are_refused_by_an_error_that_names_the_library()
      throws IOException {
    for (var file : List.of("v1/zstd.nut", "v1/zstd-dictionary.nut", "v1/set-7.nut")) {
      assertEquals("unsupported " + Layout.Header.FLAGS + " " + Zstd.EXPECTED, open(file));
    }
  }
}
