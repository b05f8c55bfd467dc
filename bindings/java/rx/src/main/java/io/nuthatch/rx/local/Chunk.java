package io.nuthatch.rx.local;

/**
 * Mapped rows.
 *
 * @param items the objects; the first {@code count} are valid
 * @param count number of valid objects
 */
record Chunk<T>(T[] items, int count) {

  /** Marks the end of a scan. */
  static final Chunk<?> END = new Chunk<>(new Object[0], 0);

  /** A chunk without items. */
  @SuppressWarnings("unchecked")
  static <T> Chunk<T> empty() {
    return new Chunk<>((T[]) new Object[0], 0);
  }
}
