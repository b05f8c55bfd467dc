package io.nuthatch.rx.remote;

/** The calls and the progress of one subscription to a stream. */
interface Plan<M, T> {

  /** Returns the source of the remaining messages. */
  Source<M> open();

  /** Records a received message. Called by the thread that delivers it. */
  default void came(M message) {}

  /** Returns the items of the next message. */
  Chunk<T> read(M message) throws Throwable;

  /** Returns whether the stream may resume after a failure to reach the server. */
  boolean mayResume();

  /** Returns whether resuming is limited by {@code reconnect}, not by a number of attempts. */
  default boolean reconnects() {
    return false;
  }

  /** Returns whether subscribing waits for the first message, which confirms the start. */
  default boolean saysThatItBegan() {
    return false;
  }

  /** Iterates over items. */
  @FunctionalInterface
  interface Chunk<T> {
    /** Returns the next item; {@code null} after the last one. */
    T next() throws Throwable;
  }
}
