package io.nuthatch.rx.remote;

/** A source of the messages of a stream, which delivers them on request. */
interface Source<M> {

  /** Starts the source. It calls {@code sink} from one thread at a time. */
  void start(Sink<M> sink);

  /** Requests a number of further messages. */
  void request(int messages);

  /** Ends the source at once. */
  void cancel();

  /** Receives the messages of a source. */
  interface Sink<M> {
    /** Receives a requested message. */
    void message(M message);

    /** Receives the end: {@code failure} is the reason, or {@code null} after the last message. */
    void end(Failure failure);
  }
}
