package io.nuthatch.rx;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The rows of {@code testdata/store/ranges.csv}: what every combination of bounds selects. */
final class RangeTable {

  static final List<String> KEYS = List.of("b", "ba", "bb", "d", "da", "f");

  private RangeTable() {}

  /** A scan, and the keys that it answers, with spaces between. */
  record Case(String line, Scan scan, boolean isLimited, String keys) {}

  static List<Case> cases() {
    var file = Path.of(System.getProperty("nuthatch.root"), "testdata", "store", "ranges.csv");
    try (var lines = Files.lines(file)) {
      return lines.skip(1).map(RangeTable::parse).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Case parse(String line) {
    var columns = line.split(",", -1);
    if (columns.length != 5) {
      throw new IllegalArgumentException("expected five columns, found " + line);
    }
    var scan = Scan.of(range(columns[0], columns[1]));
    scan = columns[2].equals("backward") ? scan.reverse() : scan;
    boolean limited = !columns[3].isEmpty();
    scan = limited ? scan.limit(Long.parseLong(columns[3])) : scan;
    return new Case(line, scan, limited, columns[4]);
  }

  private static Range range(String start, String end) {
    if (start.endsWith("*")) {
      return Range.prefix(bytes(start.substring(0, start.length() - 1)));
    }
    var range = Range.all();
    if (start.startsWith("[")) {
      range = range.from(bytes(start.substring(1)));
    } else if (start.startsWith("(")) {
      range = range.after(bytes(start.substring(1)));
    }
    if (end.endsWith("]")) {
      range = range.to(bytes(end.substring(0, end.length() - 1)));
    } else if (end.endsWith(")")) {
      range = range.before(bytes(end.substring(0, end.length() - 1)));
    }
    return range;
  }

  static byte[] bytes(String text) {
    return text.getBytes(UTF_8);
  }
}
