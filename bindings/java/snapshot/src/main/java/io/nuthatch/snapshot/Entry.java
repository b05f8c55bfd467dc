package io.nuthatch.snapshot;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * An entry of a snapshot. Its arrays belong to the caller.
 *
 * @param key the key
 * @param value the value
 */
public record Entry(byte[] key, Value value) {

  /**
   * Returns the key as text in UTF-8. Invalid bytes are replaced.
   *
   * @return the text
   */
  public String keyText() {
    return new String(key, StandardCharsets.UTF_8);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Entry that && Arrays.equals(key, that.key) && value.equals(that.value);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(key) + value.hashCode();
  }
}
