package io.nuthatch.snapshot;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The files of {@code testdata/snapshot}, and keys and values in their JSON form. */
final class Vectors {

  static final Path ROOT =
      Path.of(System.getProperty("nuthatch.root"), "testdata", "snapshot").normalize();

  private Vectors() {}

  static Object json(String name) {
    try {
      return Json.parse(Files.readString(ROOT.resolve(name)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static List<Map<String, Object>> table(String name) {
    return Json.list(json(name)).stream().map(Json::object).toList();
  }

  /** Returns the document of a good file such as {@code v1/one.nut}. */
  static Map<String, Object> document(String file) {
    return Json.object(json(file.replaceFirst("\\.nut$", ".json")));
  }

  /** Returns the names of the files in {@code v1} that end in a suffix. */
  static List<String> files(String suffix) {
    try (var files = Files.list(ROOT.resolve("v1"))) {
      return files
          .map(file -> "v1/" + file.getFileName())
          .filter(name -> name.endsWith(suffix))
          .sorted()
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void copyShards(Path folder) throws IOException {
    for (var shard : files(".shard")) {
      var file = ROOT.resolve(shard);
      Files.copy(file, folder.resolve(file.getFileName()), StandardCopyOption.REPLACE_EXISTING);
    }
  }

  /** Returns the bytes of a case: a file, truncated or extended with zeros, and patched. */
  static byte[] damaged(Map<String, Object> damage) throws IOException {
    var bytes = Files.readAllBytes(ROOT.resolve((String) damage.get("file")));
    if (damage.get("length") instanceof Long length) {
      bytes = Arrays.copyOf(bytes, length.intValue());
    }
    for (var patch : patches(damage)) {
      int at = ((Long) patch.get("at")).intValue();
      var changed = HexFormat.of().parseHex((String) patch.get("hex"));
      System.arraycopy(changed, 0, bytes, at, changed.length);
    }
    return bytes;
  }

  static List<Map<String, Object>> patches(Map<String, Object> damage) {
    var patches = damage.get("patch");
    return patches == null ? List.of() : Json.list(patches).stream().map(Json::object).toList();
  }

  static byte[] key(Object json) {
    return json instanceof String text ? text.getBytes(StandardCharsets.UTF_8) : bytes(json);
  }

  private static byte[] bytes(Object json) {
    return Base64.getDecoder().decode((String) Json.object(json).get("$bytes"));
  }

  /** Returns the expected value of metadata. */
  static byte[] metadataValue(Object json) {
    return key(json);
  }

  /** Describes a value: its type, and its elements with the bits of numbers. */
  static String describe(Value value) {
    var elements =
        switch (value) {
          case Value.Bytes bytes -> HexFormat.of().formatHex(bytes.value());
          case Value.Text text -> quote(text.value());
          case Value.Bool bool -> "" + bool.value();
          case Value.I64 number -> "" + number.value();
          case Value.F64 number -> bits(number.value());
          case Value.I64List list -> Arrays.toString(list.value());
          case Value.F64List list ->
              Arrays.stream(list.value()).mapToObj(Vectors::bits).toList().toString();
          case Value.F32List list -> {
            var bits = new String[list.value().length];
            Arrays.setAll(bits, i -> bits(list.value()[i]));
            yield List.of(bits).toString();
          }
          case Value.TextList list -> list.value().stream().map(Vectors::quote).toList().toString();
          case Value.EmptyList empty -> "[]";
        };
    return value.type() + " " + elements;
  }

  /** Describes a value of the JSON documents, as {@link #describe(Value)} does. */
  static String describe(String type, Object json) {
    var elements =
        switch (type) {
          case "bytes" -> HexFormat.of().formatHex(bytes(json));
          case "string" -> quote((String) json);
          case "f64" -> bits(json instanceof Double number ? number : number(json, "$f64"));
          case "list of f64" ->
              Json.list(json instanceof Map<?, ?> map ? map.get("$f64") : json).stream()
                  .map(element -> bits(number(element)))
                  .toList()
                  .toString();
          case "list of f32" ->
              Json.list(Json.object(json).get("$f32")).stream()
                  .map(Vectors::singleBits)
                  .toList()
                  .toString();
          case "list of string" ->
              Json.list(json).stream()
                  .map(element -> quote((String) element))
                  .collect(Collectors.toList())
                  .toString();
          default -> json.toString();
        };
    return type + " " + elements;
  }

  private static String quote(String text) {
    return '"' + text.replace("\"", "\\\"") + '"';
  }

  private static String bits(double number) {
    return Long.toHexString(Double.doubleToRawLongBits(number));
  }

  private static String bits(float number) {
    return Integer.toHexString(Float.floatToRawIntBits(number));
  }

  private static double number(Object json, String name) {
    return number(Json.object(json).get(name));
  }

  private static double number(Object json) {
    if (json instanceof String text && text.startsWith("0x")) {
      return Double.longBitsToDouble(Long.parseUnsignedLong(text.substring(2), 16));
    }
    return json instanceof String text ? Double.parseDouble(text) : (Double) json;
  }

  private static String singleBits(Object json) {
    if (json instanceof String text && text.startsWith("0x")) {
      return text.substring(2);
    }
    return bits((float) number(json));
  }
}
