package io.nuthatch.rx.remote;

/** Where the messages of a stream come from, as they are asked for. */
interface Source<M> {

  /** Begins. What comes of it is told to {@code sink}, one at a time. */
  void start(Sink<M> sink);

  /** Asks for so many more messages. */
  void request(int messages);

  /** Ends it at once. */
  void cancel();

  /** Takes what a source brings. */
  interface Sink<M> {
    /** A message that was asked for. */
    void message(M message);

    /** There will be no more: {@code failure} is why, or {@code null} where that was all. */
    void end(Failure failure);
  }
}
