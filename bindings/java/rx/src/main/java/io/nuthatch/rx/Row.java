package io.nuthatch.rx;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * A key and its value. Two rows are equal if their bytes are equal.
 *
 * @param key 1 to 511 bytes
 * @param value the value; may be empty
 */
public record Row(byte[] key, byte[] value) {

  /**
   * Returns a row with a key and a value in UTF-8.
   *
   * @param key the key
   * @param value the value
   * @return the row
   */
  public static Row of(String key, String value) {
    return new Row(key.getBytes(StandardCharsets.UTF_8), value.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Returns the key as text in UTF-8.
   *
   * @return the key
   */
  public String keyText() {
    return new String(key, StandardCharsets.UTF_8);
  }

  /**
   * Returns the value as text in UTF-8.
   *
   * @return the value
   */
  public String valueText() {
    return new String(value, StandardCharsets.UTF_8);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Row row
        && Arrays.equals(key, row.key)
        && Arrays.equals(value, row.value);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(key) + Arrays.hashCode(value);
  }

  @Override
  public String toString() {
    var hex = HexFormat.of();
    return "Row[key=" + hex.formatHex(key) + ", value=" + hex.formatHex(value) + "]";
  }
}
