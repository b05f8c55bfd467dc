package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.ConditionUnmetException;
import io.nuthatch.rx.StoreException;
import java.lang.foreign.MemorySegment;

/** Converts errors of the library to exceptions. */
final class Failures {

  private static final long MESSAGE = Layouts.at(Layouts.ERROR, "message");
  private static final long WRITE = Layouts.at(Layouts.ERROR, "position");

  private Failures() {}

  /** Returns the exception for a {@code nuthatch_error}. */
  static StoreException of(MemorySegment error) {
    var code = Native.codeName(error.get(JAVA_INT, 0));
    var message = error.getString(MESSAGE);
    return code.equals("condition-unmet")
        ? new ConditionUnmetException(message, (int) error.get(JAVA_LONG, WRITE))
        : StoreException.of(code, message);
  }

  /** Returns the exception for calls in progress when the store is closed, and for later calls. */
  static StoreException closed() {
    return StoreException.of("closed", "the store is closed");
  }
}
