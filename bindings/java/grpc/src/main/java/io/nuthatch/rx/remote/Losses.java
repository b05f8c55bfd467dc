package io.nuthatch.rx.remote;

import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.StoreException;

/** Failures in a row of a stream, and whether it is opened once more. Used by one thread. */
final class Losses {

  private final ConnectOptions options;
  private int count;
  private long sinceNanos;
  private boolean isTimeOver;

  Losses(ConnectOptions options) {
    this.options = options;
  }

  /** Notes that it went well. */
  void clear() {
    count = 0;
    isTimeOver = false;
  }

  /** Notes a failure; false where the stream has failed for as long as it may. */
  boolean mayReconnect() {
    if (count == 0) {
      sinceNanos = System.nanoTime();
    }
    count++;
    long lost = System.nanoTime() - sinceNanos;
    boolean hasTimeLeft = lost < options.reconnect().toNanos();
    isTimeOver = options.tries() > 0 && !options.reconnect().isZero() && !hasTimeLeft;
    return options.tries() > 0 && hasTimeLeft;
  }

  /** Notes a failure of what is tried a few times only; false where that was the last try. */
  boolean mayTryAgain() {
    count++;
    return count <= options.tries();
  }

  /** Returns the exception of the last attempt. After the time to reconnect it names the time. */
  StoreException described(StoreException thrown) {
    if (!isTimeOver) {
      return thrown;
    }
    var seconds = options.reconnect().toMillis() / 1000.0;
    var more = "; tried to reconnect for %s s; ConnectOptions.reconnect sets the time";
    var message = thrown.getMessage() + more.formatted(seconds);
    return StoreException.of(thrown.code(), message, thrown.getCause());
  }

  /** How often it failed in a row. */
  int count() {
    return count;
  }
}
