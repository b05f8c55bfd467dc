package io.nuthatch.rx;

/** Reads with a cursor. */
@FunctionalInterface
public interface CursorReader<T> {

  /**
   * Moves the cursor and emits what it likes. Returning ends the stream, throwing fails it.
   *
   * @param cursor valid until this returns
   * @param sink takes what the stream emits
   */
  void read(Cursor cursor, Sink<? super T> sink) throws Exception;

  /** Takes what a stream emits. */
  @FunctionalInterface
  interface Sink<T> {
    /**
     * Emits an item, and waits until the subscriber asks for one before. When the subscriber has
     * cancelled, this does not return: it throws what must not be caught.
     */
    void onNext(T item);
  }
}
