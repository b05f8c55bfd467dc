package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Entry;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.Optional;
import java.util.OptionalLong;

/** Converts entries of the library to objects. */
final class Entries {

  private static final long VERSION = Layouts.at(Layouts.ENTRY, "version");
  private static final long EXPIRES = Layouts.at(Layouts.ENTRY, "expires_at_ms");
  private static final long IS_STAMPED = Layouts.at(Layouts.ENTRY, "is_stamped");

  private Entries() {}

  /** Converts an existing entry and its value. */
  interface Maker<T> {
    T make(MemorySegment entry, byte[] value);
  }

  static Entry entry(MemorySegment entry, byte[] value) {
    boolean isStamped = entry.get(JAVA_INT, IS_STAMPED) != 0;
    var version =
        isStamped ? OptionalLong.of(entry.get(JAVA_LONG, VERSION)) : OptionalLong.empty();
    return new Entry(value, version, moment(entry.get(JAVA_LONG, EXPIRES)));
  }

  /** Converts a time in milliseconds since 1970; 0 is none. */
  static Optional<Instant> moment(long ms) {
    return ms == 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(ms));
  }
}
