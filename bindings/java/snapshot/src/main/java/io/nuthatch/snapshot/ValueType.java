package io.nuthatch.snapshot;

import java.util.Arrays;

/** The type of a value. */
public enum ValueType {
  /** Bytes. */
  BYTES(1, 1, 1, "bytes"),
  /** Text in UTF-8. */
  STRING(2, 1, 1, "string"),
  /** A boolean. */
  BOOL(3, 1, 1, "bool"),
  /** A signed integer of 64 bits. */
  I64(4, 8, 8, "i64"),
  /** A floating-point number of 64 bits. */
  F64(5, 8, 8, "f64"),
  /** A list of {@link #I64}. */
  I64_LIST(6, 8, 8, "list of i64"),
  /** A list of {@link #F64}. */
  F64_LIST(7, 8, 8, "list of f64"),
  /** A list of floating-point numbers of 32 bits. */
  F32_LIST(8, 4, 4, "list of f32"),
  /** A list of {@link #STRING}. */
  STRING_LIST(9, 4, 1, "list of string"),
  /** A list without elements, which reads as a list of any type. */
  EMPTY_LIST(10, 1, 1, "empty list");

  static final int MAX_CODE = 10;
  static final int STRING_CODE = 2;

  private static final ValueType[] BY_CODE = new ValueType[16];

  static {
    Arrays.stream(values()).forEach(type -> BY_CODE[type.code] = type);
  }

  private final int code;
  private final int alignment;
  private final int elementBytes;
  private final String label;

  ValueType(int code, int alignment, int elementBytes, String label) {
    this.code = code;
    this.alignment = alignment;
    this.elementBytes = elementBytes;
    this.label = label;
  }

  /**
   * Returns the code of the type in a file.
   *
   * @return the code, 1 to 10
   */
  public int code() {
    return code;
  }

  /**
   * Returns the name of the type in JSON documents and messages, such as {@code list of i64}.
   *
   * @return the name
   */
  @Override
  public String toString() {
    return label;
  }

  /** Returns the alignment of an uncompressed value in a file, in bytes. */
  int alignment() {
    return alignment;
  }

  /** Returns the bytes of one element of a list of numbers, or of one number. */
  int elementBytes() {
    return elementBytes;
  }

  boolean isList() {
    return code >= I64_LIST.code;
  }

  /** Returns the type of a code, or {@code null} for an unknown one. */
  static ValueType of(int code) {
    return BY_CODE[code];
  }
}
