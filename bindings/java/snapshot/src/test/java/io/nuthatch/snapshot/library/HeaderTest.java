package io.nuthatch.snapshot.library;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The structs and functions here are those of {@code nuthatch.h}. */
class HeaderTest {

  private static final Map<String, Integer> SIZES =
      Map.of("uint8_t", 1, "int32_t", 4, "uint32_t", 4, "uint64_t", 8, "size_t", 8);

  private static String header;

  @BeforeAll
  static void readHeader() throws IOException {
    var path = Path.of(System.getProperty("nuthatch.root"), "bindings/c/include/nuthatch.h");
    header = Files.readString(path).replaceAll("//[^\n]*", "");
  }

  @Test
  void structs_have_the_fields_of_the_header_in_its_order() {
    for (var struct :
        List.of(WriterFunctions.ERROR, WriterFunctions.OPTIONS, WriterFunctions.SUMMARY)) {
      var name = struct.name().orElseThrow();
      var found = Pattern.compile("typedef struct \\{([^}]*)} " + name + ";").matcher(header);
      assertTrue(found.find(), name);
      var fields = Arrays.stream(found.group(1).split(";")).map(String::strip);
      var expected = fields.filter(field -> !field.isEmpty()).map(HeaderTest::field).toList();
      assertEquals(expected, fieldsOf(struct), name);
    }
  }

  /** Returns name and size of a field: {@code "message 488"} for {@code uint8_t message[488]}. */
  private static String field(String declaration) {
    var parts = Pattern.compile("(\\w+) (\\w+)(\\[(\\d+)])?").matcher(declaration);
    assertTrue(parts.matches(), declaration);
    int count = parts.group(4) == null ? 1 : Integer.parseInt(parts.group(4));
    return parts.group(2) + " " + SIZES.get(parts.group(1)) * count;
  }

  private static List<String> fieldsOf(StructLayout struct) {
    return struct.memberLayouts().stream()
        .map(layout -> layout.name().orElseThrow() + " " + layout.byteSize())
        .toList();
  }

  @Test
  void functions_take_what_the_header_says() {
    assertEquals(6, WriterFunctions.SIGNATURES.size());
    WriterFunctions.SIGNATURES.forEach(
        (name, signature) -> {
          var found = Pattern.compile("\\b" + name + "\\(([^)]*)\\);").matcher(header);
          assertTrue(found.find(), name);
          var expected = Arrays.stream(found.group(1).split(",")).map(HeaderTest::parameter);
          var here = signature.argumentLayouts().stream().map(HeaderTest::parameter);
          assertEquals(expected.toList(), here.toList(), name);
        });
  }

  private static String parameter(String declaration) {
    boolean isHandle = declaration.strip().startsWith("nuthatch_snapshot_writer ");
    var type = declaration.strip().split(" ")[0];
    return declaration.contains("*") ? "address" : "" + (isHandle ? 8 : SIZES.get(type));
  }

  private static String parameter(MemoryLayout layout) {
    return layout instanceof AddressLayout ? "address" : "" + layout.byteSize();
  }
}
