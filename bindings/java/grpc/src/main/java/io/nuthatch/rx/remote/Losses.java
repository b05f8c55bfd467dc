package io.nuthatch.rx.remote;

import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.StoreException;

/** Counts consecutive failures of a stream, and decides on retries. Used by one thread. */
final class Losses {

  private final ConnectOptions options;
  private int count;
  private long sinceNanos;
  private boolean isTimeOver;

  Losses(ConnectOptions options) {
    this.options = options;
  }

  /** Records a success. */
  void clear() {
    count = 0;
    isTimeOver = false;
  }

  /** Records a failure. Returns false if the stream has failed for the maximum time. */
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

  /** Records a failure of a call with few retries. Returns false if it was the last attempt. */
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

  /** Returns the number of consecutive failures. */
  int count() {
    return count;
  }
}
