package io.nuthatch.rx.local;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SequenceLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What is written here by hand is what {@code nuthatch.h} says. */
class HeaderTest {

  private static String header;

  @BeforeAll
  static void readHeader() throws IOException {
    var path = Path.of(System.getProperty("nuthatch.root"), "bindings/c/include/nuthatch.h");
    header = Files.readString(path).replaceAll("//[^\n]*", "");
  }

  @Test
  void structs_have_the_fields_of_the_header_in_its_order() {
    for (var struct : Layouts.ALL) {
      var name = struct.name().orElseThrow();
      var found = Pattern.compile("typedef struct \\{([^}]*)} " + name + ";").matcher(header);
      assertTrue(found.find(), name);
      var fields = new ArrayList<String>();
      for (var line : found.group(1).split(";")) {
        if (!line.isBlank()) {
          fields.add(field(line.strip()));
        }
      }
      var here = struct.memberLayouts().stream().map(HeaderTest::field).toList();
      assertEquals(fields, here, name);
    }
  }

  /** {@code "number key_len 4"} for {@code uint32_t key_len}. */
  private static String field(String declaration) {
    var parts = Pattern.compile("^(.*?)(\\w+)(\\[(\\d+)])?$").matcher(declaration);
    assertTrue(parts.matches(), declaration);
    var type = parts.group(1).replace("const ", "").replace("struct ", "").strip();
    int many = parts.group(4) == null ? 1 : Integer.parseInt(parts.group(4));
    return kind(type) + " " + parts.group(2) + " " + size(type) * many;
  }

  private static String field(MemoryLayout layout) {
    var kind =
        switch (layout) {
          case AddressLayout address -> "address";
          case GroupLayout group -> "struct";
          case SequenceLayout list -> "number";
          default -> "number";
        };
    return kind + " " + layout.name().orElseThrow() + " " + layout.byteSize();
  }

  private static String kind(String type) {
    if (type.endsWith("*")) {
      return "address";
    }
    boolean isStruct = Layouts.ALL.stream().anyMatch(s -> s.name().orElseThrow().equals(type));
    return isStruct ? "struct" : "number";
  }

  private static long size(String type) {
    for (var struct : Layouts.ALL) {
      if (struct.name().orElseThrow().equals(type)) {
        return struct.byteSize();
      }
    }
    return switch (type) {
      case "uint8_t" -> 1;
      case "int32_t", "uint32_t" -> 4;
      default -> 8;
    };
  }

  @Test
  void functions_take_what_the_header_says() {
    assertTrue(Native.SIGNATURES.size() > 30, Native.SIGNATURES.keySet().toString());
    Native.SIGNATURES.forEach(
        (name, signature) -> {
          var found = Pattern.compile("\\b" + name + "\\(([^)]*)\\);").matcher(header);
          assertTrue(found.find(), name);
          var there = List.of(found.group(1).split(",")).stream().map(HeaderTest::parameter);
          var here = signature.argumentLayouts().stream().map(HeaderTest::parameter);
          assertEquals(
              there.collect(Collectors.joining(" ")), here.collect(Collectors.joining(" ")), name);
        });
  }

  private static String parameter(String declaration) {
    var type = declaration.strip().replaceAll("\\w+$", "").strip();
    boolean isAddress = type.endsWith("*") || type.equals("nuthatch_progress");
    return isAddress ? "address" : "" + size(type);
  }

  private static String parameter(MemoryLayout layout) {
    return layout instanceof AddressLayout ? "address" : "" + layout.byteSize();
  }

  @Test
  void every_function_of_the_header_is_called_or_named_here() {
    // Java writes by batches alone, and closes tables with their store. This module has no
    // snapshots.
    var uncalled =
        List.of(
            "nuthatch_version",
            "nuthatch_store_put",
            "nuthatch_store_delete",
            "nuthatch_store_append",
            "nuthatch_store_close_table");
    var found = Pattern.compile("\\b(nuthatch_(?!snapshot_)\\w+)\\(").matcher(header);
    int functions = 0;
    while (found.find()) {
      var name = found.group(1);
      assertTrue(Native.SIGNATURES.containsKey(name) || uncalled.contains(name), name);
      functions++;
    }
    assertEquals(functions, Native.SIGNATURES.size() + uncalled.size());
    assertNotNull(Native.codeName(1));
  }
}
