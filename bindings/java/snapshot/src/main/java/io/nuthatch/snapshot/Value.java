package io.nuthatch.snapshot;

import java.util.Arrays;
import java.util.List;

/**
 * A value of a snapshot. The arrays of a value from a snapshot belong to the caller. A value that
 * is made from an array keeps the array, without a copy. Values are equal if they have the same
 * type and equal elements; floating-point numbers are equal if their bits are, or if both are NaN.
 */
public sealed interface Value {

  /**
   * Returns the type of the value.
   *
   * @return the type
   */
  ValueType type();

  /**
   * Returns bytes.
   *
   * @param bytes the bytes
   * @return the value
   */
  static Value of(byte[] bytes) {
    return new Bytes(bytes);
  }

  /**
   * Returns a string.
   *
   * @param text the text
   * @return the value
   */
  static Value of(String text) {
    return new Text(text);
  }

  /**
   * Returns a boolean.
   *
   * @param bool the boolean
   * @return the value
   */
  static Value of(boolean bool) {
    return new Bool(bool);
  }

  /**
   * Returns an integer.
   *
   * @param number the integer
   * @return the value
   */
  static Value of(long number) {
    return new I64(number);
  }

  /**
   * Returns a floating-point number.
   *
   * @param number the number
   * @return the value
   */
  static Value of(double number) {
    return new F64(number);
  }

  /**
   * Returns a list of integers. An empty list has no type.
   *
   * @param list the integers
   * @return the value
   */
  static Value of(long[] list) {
    return list.length == 0 ? new EmptyList() : new I64List(list);
  }

  /**
   * Returns a list of floating-point numbers of 64 bits. An empty list has no type.
   *
   * @param list the numbers
   * @return the value
   */
  static Value of(double[] list) {
    return list.length == 0 ? new EmptyList() : new F64List(list);
  }

  /**
   * Returns a list of floating-point numbers of 32 bits. An empty list has no type.
   *
   * @param list the numbers
   * @return the value
   */
  static Value of(float[] list) {
    return list.length == 0 ? new EmptyList() : new F32List(list);
  }

  /**
   * Returns a list of strings. An empty list has no type.
   *
   * @param list the strings
   * @return the value
   */
  static Value of(List<String> list) {
    return list.isEmpty() ? new EmptyList() : new TextList(list);
  }

  /**
   * Bytes.
   *
   * @param value the bytes
   */
  record Bytes(byte[] value) implements Value {
    @Override
    public ValueType type() {
      return ValueType.BYTES;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Bytes that && Arrays.equals(value, that.value);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(value);
    }

    @Override
    public String toString() {
      return "Bytes" + Arrays.toString(value);
    }
  }

  /**
   * A string.
   *
   * @param value the text
   */
  record Text(String value) implements Value {
    @Override
    public ValueType type() {
      return ValueType.STRING;
    }
  }

  /**
   * A boolean.
   *
   * @param value the boolean
   */
  record Bool(boolean value) implements Value {
    @Override
    public ValueType type() {
      return ValueType.BOOL;
    }
  }

  /**
   * A signed integer of 64 bits.
   *
   * @param value the integer
   */
  record I64(long value) implements Value {
    @Override
    public ValueType type() {
      return ValueType.I64;
    }
  }

  /**
   * A floating-point number of 64 bits. A NaN keeps its bits.
   *
   * @param value the number
   */
  record F64(double value) implements Value {
    @Override
    public ValueType type() {
      return ValueType.F64;
    }
  }

  /**
   * A list of integers.
   *
   * @param value the integers, at least one
   */
  record I64List(long[] value) implements Value {
    @Override
    public ValueType type() {
      return ValueType.I64_LIST;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof I64List that && Arrays.equals(value, that.value);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(value);
    }

    @Override
    public String toString() {
      return "I64List" + Arrays.toString(value);
    }
  }

  /**
   * A list of floating-point numbers of 64 bits.
   *
   * @param value the numbers, at least one
   */
  record F64List(double[] value) implements Value {
    @Override
    public ValueType type() {
      return ValueType.F64_LIST;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof F64List that && Arrays.equals(value, that.value);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(value);
    }

    @Override
    public String toString() {
      return "F64List" + Arrays.toString(value);
    }
  }

  /**
   * A list of floating-point numbers of 32 bits.
   *
   * @param value the numbers, at least one
   */
  record F32List(float[] value) implements Value {
    @Override
    public ValueType type() {
      return ValueType.F32_LIST;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof F32List that && Arrays.equals(value, that.value);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(value);
    }

    @Override
    public String toString() {
      return "F32List" + Arrays.toString(value);
    }
  }

  /**
   * A list of strings.
   *
   * @param value the strings, at least one; the list cannot be changed
   */
  record TextList(List<String> value) implements Value {
    /** Copies the list, unless it cannot be changed. */
    public TextList {
      value = List.copyOf(value);
    }

    @Override
    public ValueType type() {
      return ValueType.STRING_LIST;
    }
  }

  /** A list without elements. */
  record EmptyList() implements Value {
    @Override
    public ValueType type() {
      return ValueType.EMPTY_LIST;
    }
  }
}
