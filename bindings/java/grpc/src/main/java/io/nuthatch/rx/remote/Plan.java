package io.nuthatch.rx.remote;

/** What one subscription to a stream reads, and where it is by now. */
interface Plan<M, T> {

  /** The source that brings what is left. */
  Source<M> open();

  /** Notes that a message came, which will be read. Called by whoever brings it. */
  default void came(M message) {}

  /** The items of the next message. */
  Chunk<T> read(M message) throws Throwable;

  /** Whether it may begin again, where it is, when the server was not reached. */
  boolean mayResume();

  /** Whether it tries to begin again for as long as the options allow, and not a few times only. */
  default boolean reconnects() {
    return false;
  }

  /** Whether subscribing waits for the first message, which says that the stream has begun. */
  default boolean saysThatItBegan() {
    return false;
  }

  /** Items, one after the other. */
  @FunctionalInterface
  interface Chunk<T> {
    /** The next one; {@code null} after the last. */
    T next() throws Throwable;
  }
}
