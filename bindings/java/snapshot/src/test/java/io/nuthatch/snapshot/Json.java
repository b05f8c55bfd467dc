package io.nuthatch.snapshot;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A parser of JSON for the test vectors. Integers are {@link Long}, also unsigned ones of 64 bits;
 * numbers with a point or an exponent are {@link Double}.
 */
final class Json {

  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  static Object parse(String text) {
    return new Json(text).value();
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> object(Object value) {
    return (Map<String, Object>) value;
  }

  @SuppressWarnings("unchecked")
  static List<Object> list(Object value) {
    return (List<Object>) value;
  }

  private Object value() {
    return switch (peek()) {
      case '{' -> object();
      case '[' -> list();
      case '"' -> string();
      case 't', 'f', 'n' -> word();
      default -> number();
    };
  }

  private char peek() {
    while (Character.isWhitespace(text.charAt(at))) {
      at++;
    }
    return text.charAt(at);
  }

  /** Skips a character if it follows. */
  private boolean skip(char wanted) {
    boolean follows = peek() == wanted;
    at += follows ? 1 : 0;
    return follows;
  }

  private Map<String, Object> object() {
    var object = new LinkedHashMap<String, Object>();
    skip('{');
    while (!skip('}')) {
      peek();
      var name = string();
      skip(':');
      object.put(name, value());
      skip(',');
    }
    return object;
  }

  private List<Object> list() {
    var list = new ArrayList<Object>();
    skip('[');
    while (!skip(']')) {
      list.add(value());
      skip(',');
    }
    return list;
  }

  private String string() {
    var string = new StringBuilder();
    for (at++; text.charAt(at) != '"'; at++) {
      if (text.charAt(at) != '\\') {
        string.append(text.charAt(at));
        continue;
      }
      at++;
      char escape = text.charAt(at);
      if (escape == 'u') {
        string.append((char) Integer.parseInt(text, at + 1, at + 5, 16));
        at += 4;
      } else {
        int known = "bfnrt".indexOf(escape);
        string.append(known < 0 ? escape : "\b\f\n\r\t".charAt(known));
      }
    }
    at++;
    return string.toString();
  }

  private Object word() {
    var word =
        text.startsWith("true", at) ? "true" : text.startsWith("null", at) ? "null" : "false";
    at += word.length();
    return word.equals("null") ? null : Boolean.valueOf(word);
  }

  private Object number() {
    int begin = at;
    while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    var number = text.substring(begin, at);
    boolean isFloat = number.chars().anyMatch(c -> ".eE".indexOf(c) >= 0);
    if (isFloat) {
      return Double.valueOf(number);
    }
    return new BigInteger(number).longValue();
  }
}
