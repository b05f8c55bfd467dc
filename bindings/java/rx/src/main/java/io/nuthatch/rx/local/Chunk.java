package io.nuthatch.rx.local;

/**
 * What a mapper made of some rows.
 *
 * @param items the objects; the first {@code count} are valid
 * @param count how many there are
 */
record Chunk<T>(T[] items, int count) {

  /** Stands for the end of a scan. */
  static final Chunk<?> END = new Chunk<>(new Object[0], 0);

  /** A chunk with nothing in it. */
  @SuppressWarnings("unchecked")
  static <T> Chunk<T> empty() {
    return new Chunk<>((T[]) new Object[0], 0);
  }
}
