package io.nuthatch.snapshot;

import java.util.Iterator;
import java.util.NoSuchElementException;

/** An iterator over the entries of a snapshot, with copies of keys and values. */
final class EntryIterator implements Iterator<Entry> {

  private final Cursor cursor;

  EntryIterator(Cursor cursor) {
    this.cursor = cursor;
  }

  @Override
  public boolean hasNext() {
    return cursor.hasNext();
  }

  @Override
  public Entry next() {
    if (!cursor.next()) {
      throw new NoSuchElementException();
    }
    return new Entry(cursor.key(), cursor.value().asValue());
  }
}
