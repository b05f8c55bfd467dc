package io.nuthatch.rx;

import java.util.Objects;

/** A requirement on a key, for a write. */
public sealed interface Condition {

  /**
   * Returns the condition that the key does not exist.
   *
   * @return the condition
   */
  static Condition absent() {
    return Presence.ABSENT;
  }

  /**
   * Returns the condition that the key exists.
   *
   * @return the condition
   */
  static Condition present() {
    return Presence.PRESENT;
  }

  /**
   * Returns the condition that the key exists with this value.
   *
   * @param value the value
   * @return the condition
   */
  static Condition equalTo(byte[] value) {
    return new EqualTo(value);
  }

  /**
   * Returns the condition that the key of a stamped table exists with this version: {@link
   * Entry#version}.
   *
   * @param version the version
   * @return the condition
   */
  static Condition version(long version) {
    return new Version(version);
  }

  /** Whether a key exists. */
  enum Presence implements Condition {
    /** The key does not exist. */
    ABSENT,
    /** The key exists. */
    PRESENT
  }

  /**
   * The key exists with this value.
   *
   * @param value the value
   */
  record EqualTo(byte[] value) implements Condition {
    /** Checks that the value is not null. */
    public EqualTo {
      Objects.requireNonNull(value, "value");
    }
  }

  /**
   * The key of a stamped table exists with this version.
   *
   * @param version the version
   */
  record Version(long version) implements Condition {}
}
