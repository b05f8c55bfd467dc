package io.nuthatch.rx;

/**
 * Reads with a cursor, and emits items.
 *
 * @param <T> the type of the items that it emits
 */
@FunctionalInterface
public interface CursorReader<T> {

  /**
   * Reads, and emits items to {@code sink}. The stream completes when this method returns, and
   * fails if it throws.
   *
   * @param cursor the cursor, valid until this method returns
   * @param sink emits the items of the stream
   * @throws Exception to fail the stream
   */
  void read(Cursor cursor, Sink<? super T> sink) throws Exception;

  /**
   * Emits the items of a stream.
   *
   * @param <T> the type of the items
   */
  @FunctionalInterface
  interface Sink<T> {
    /**
     * Waits until the subscriber requests an item, and emits this one. If the subscriber has
     * cancelled, throws an exception that ends {@link CursorReader#read}; do not catch it.
     *
     * @param item the item
     */
    void onNext(T item);
  }
}
