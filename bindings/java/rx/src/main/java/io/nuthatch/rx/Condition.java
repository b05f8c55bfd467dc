package io.nuthatch.rx;

import java.util.Objects;

/** What must hold of a key for a write to happen. */
public sealed interface Condition {

  /** The key is not there. */
  static Condition absent() {
    return Presence.ABSENT;
  }

  /** The key is there. */
  static Condition present() {
    return Presence.PRESENT;
  }

  /** The key is there with this value. */
  static Condition equalTo(byte[] value) {
    return new EqualTo(value);
  }

  /** The key of a stamped table is there in this version. */
  static Condition version(long version) {
    return new Version(version);
  }

  /** Whether a key is there. */
  enum Presence implements Condition {
    /** It is not. */
    ABSENT,
    /** It is. */
    PRESENT
  }

  /** The key is there with this value. */
  record EqualTo(byte[] value) implements Condition {
    /** Checks that there is a value. */
    public EqualTo {
      Objects.requireNonNull(value, "value");
    }
  }

  /** The key of a stamped table is there in this version. */
  record Version(long version) implements Condition {}
}
