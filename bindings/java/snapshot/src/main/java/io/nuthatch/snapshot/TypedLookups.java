package io.nuthatch.snapshot;

import java.util.List;

/**
 * Lookups of values of a known type, which {@link Snapshot} has. They return {@code null} for a
 * missing key.
 *
 * <p>Values are never converted: a value of another type is a {@link SnapshotException} with the
 * code {@code wrong-type}. An empty list reads as a list of any type. The other codes are {@code
 * corrupt} and {@code unreadable}, and lookups in a closed snapshot throw {@link
 * SnapshotClosedException}.
 *
 * <p>A key is text, whose UTF-8 is the key, or bytes. Returned arrays belong to the caller.
 */
public abstract sealed class TypedLookups permits Snapshot {

  TypedLookups() {}

  /** Returns a view of the value of a key, or {@code null}. */
  abstract ValueView view(byte[] key);

  /** Returns the string of a key by the shortest path, or {@code null} if that is undecided. */
  abstract String readString(byte[] key);

  private ValueView view(String key) {
    var bytes = Utf8.key(key);
    return bytes == null ? null : view(bytes);
  }

  /**
   * Returns a string.
   *
   * @param key the key
   * @return the string, or {@code null} for a missing key
   */
  public final String getString(byte[] key) {
    var text = readString(key);
    return text == null ? getStringByView(key) : text;
  }

  /**
   * Returns a string.
   *
   * @param key the key
   * @return the string, or {@code null} for a missing key
   */
  public final String getString(String key) {
    var bytes = Utf8.key(key);
    return bytes == null ? null : getString(bytes);
  }

  private String getStringByView(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asString();
  }

  /**
   * Returns bytes.
   *
   * @param key the key
   * @return the bytes, or {@code null} for a missing key
   */
  public final byte[] getBytes(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asBytes();
  }

  /**
   * Returns bytes.
   *
   * @param key the key
   * @return the bytes, or {@code null} for a missing key
   */
  public final byte[] getBytes(String key) {
    var view = view(key);
    return view == null ? null : view.asBytes();
  }

  /**
   * Returns a boolean.
   *
   * @param key the key
   * @return the boolean, or {@code null} for a missing key
   */
  public final Boolean getBoolean(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asBoolean();
  }

  /**
   * Returns a boolean.
   *
   * @param key the key
   * @return the boolean, or {@code null} for a missing key
   */
  public final Boolean getBoolean(String key) {
    var view = view(key);
    return view == null ? null : view.asBoolean();
  }

  /**
   * Returns an integer.
   *
   * @param key the key
   * @return the integer, or {@code null} for a missing key
   */
  public final Long getLong(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asLong();
  }

  /**
   * Returns an integer.
   *
   * @param key the key
   * @return the integer, or {@code null} for a missing key
   */
  public final Long getLong(String key) {
    var view = view(key);
    return view == null ? null : view.asLong();
  }

  /**
   * Returns a floating-point number.
   *
   * @param key the key
   * @return the number, or {@code null} for a missing key
   */
  public final Double getDouble(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asDouble();
  }

  /**
   * Returns a floating-point number.
   *
   * @param key the key
   * @return the number, or {@code null} for a missing key
   */
  public final Double getDouble(String key) {
    var view = view(key);
    return view == null ? null : view.asDouble();
  }

  /**
   * Returns a list of integers.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   */
  public final long[] getLongs(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asLongs();
  }

  /**
   * Returns a list of integers.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   */
  public final long[] getLongs(String key) {
    var view = view(key);
    return view == null ? null : view.asLongs();
  }

  /**
   * Returns a list of floating-point numbers of 64 bits.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   */
  public final double[] getDoubles(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asDoubles();
  }

  /**
   * Returns a list of floating-point numbers of 64 bits.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   */
  public final double[] getDoubles(String key) {
    var view = view(key);
    return view == null ? null : view.asDoubles();
  }

  /**
   * Returns a list of floating-point numbers of 32 bits.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   */
  public final float[] getFloats(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asFloats();
  }

  /**
   * Returns a list of floating-point numbers of 32 bits.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   */
  public final float[] getFloats(String key) {
    var view = view(key);
    return view == null ? null : view.asFloats();
  }

  /**
   * Returns a list of strings.
   *
   * @param key the key
   * @return the elements; the list cannot be changed. {@code null} for a missing key
   */
  public final List<String> getStrings(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asStrings();
  }

  /**
   * Returns a list of strings.
   *
   * @param key the key
   * @return the elements; the list cannot be changed. {@code null} for a missing key
   */
  public final List<String> getStrings(String key) {
    var view = view(key);
    return view == null ? null : view.asStrings();
  }

  /**
   * Returns an integer, or another for a missing key.
   *
   * @param key the key
   * @param ifMissing the result for a missing key
   * @return the integer
   */
  public final long getLong(byte[] key, long ifMissing) {
    var view = view(key);
    return view == null ? ifMissing : view.asLong();
  }

  /**
   * Returns a floating-point number, or another for a missing key.
   *
   * @param key the key
   * @param ifMissing the result for a missing key
   * @return the number
   */
  public final double getDouble(byte[] key, double ifMissing) {
    var view = view(key);
    return view == null ? ifMissing : view.asDouble();
  }
}
