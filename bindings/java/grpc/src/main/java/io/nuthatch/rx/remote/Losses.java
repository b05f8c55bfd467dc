package io.nuthatch.rx.remote;

import io.nuthatch.rx.ConnectOptions;

/** Failures in a row of a stream, and whether it is opened once more. Used by one thread. */
final class Losses {

  private final ConnectOptions options;
  private int count;
  private long sinceNanos;

  Losses(ConnectOptions options) {
    this.options = options;
  }

  /** Notes that it went well. */
  void clear() {
    count = 0;
  }

  /** Notes a failure; false where the stream has failed for as long as it may. */
  boolean mayReconnect() {
    if (count == 0) {
      sinceNanos = System.nanoTime();
    }
    count++;
    long lost = System.nanoTime() - sinceNanos;
    return options.tries() > 0 && lost < options.reconnect().toNanos();
  }

  /** Notes a failure of what is tried a few times only; false where that was the last try. */
  boolean mayTryAgain() {
    count++;
    return count <= options.tries();
  }

  /** How often it failed in a row. */
  int count() {
    return count;
  }
}
