package io.nuthatch.snapshot;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.nuthatch.snapshot.Layout.Line;
import java.lang.foreign.MemorySegment;
import java.util.NoSuchElementException;

/**
 * Reads all entries of a snapshot in the order of its files, without allocating memory for each
 * entry, except to decompress values. A cursor is for one thread at a time. It needs not be closed.
 */
public final class Cursor {

  private final SnapshotFile[] files;
  private final RecordHead record = new RecordHead();
  private final ValueView view = new ValueView();
  private int file;
  private long line;
  private int slot;
  private boolean isAtEntry;

  Cursor(SnapshotFile[] files) {
    this.files = files;
  }

  /**
   * Moves to the next entry, and checks its bytes. After an exception, the next call continues with
   * the entry after the damaged one.
   *
   * @return whether there is another entry
   * @throws SnapshotException with the code {@code corrupt} or {@code unreadable}
   * @throws SnapshotClosedException if the snapshot is closed
   */
  public boolean next() {
    isAtEntry = false;
    view.clear();
    if (!hasNext()) {
      return false;
    }
    var current = files[file];
    try {
      long at = lineOffset(current);
      int used = slot;
      slot++;
      LineSearch.checkShift(current, at);
      record.decode(current, current.recordAt(at, used));
      record.view(view);
      view.check();
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, current);
    }
    isAtEntry = true;
    return true;
  }

  /** Returns whether there is another entry. Moves to its slot without reading its record. */
  boolean hasNext() {
    while (file < files.length) {
      var current = files[file];
      try {
        if (findSlot(current)) {
          return true;
        }
      } catch (IllegalStateException | InternalError e) {
        throw Failures.of(e, current);
      }
      file++;
      line = 0;
    }
    return false;
  }

  private boolean findSlot(SnapshotFile current) {
    for (; line < current.lines; line++) {
      for (; slot < Line.SLOTS; slot++) {
        if (current.fingerprint(lineOffset(current), slot) != 0) {
          return true;
        }
      }
      slot = 0;
    }
    return false;
  }

  private long lineOffset(SnapshotFile current) {
    return current.index + Line.LENGTH * line;
  }

  /**
   * Returns a copy of the key.
   *
   * @return the key
   * @throws NoSuchElementException if the cursor is not at an entry
   */
  public byte[] key() {
    requireEntry();
    try {
      return record.key();
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, files[file]);
    }
  }

  /**
   * Returns the length of the key in bytes.
   *
   * @return the length
   * @throws NoSuchElementException if the cursor is not at an entry
   */
  public int keyLength() {
    requireEntry();
    return record.keyLength;
  }

  /**
   * Copies the key. Allocates nothing.
   *
   * @param target the array that receives the bytes
   * @return the length of the key
   * @throws NoSuchElementException if the cursor is not at an entry
   * @throws IndexOutOfBoundsException if the array is shorter than the key
   */
  public int copyKey(byte[] target) {
    requireEntry();
    try {
      MemorySegment.copy(files[file].bytes, JAVA_BYTE, record.keyAt, target, 0, record.keyLength);
      return record.keyLength;
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, files[file]);
    }
  }

  /**
   * Returns the value. The view is valid until the next call of {@link #next}.
   *
   * @return a view of the value
   * @throws NoSuchElementException if the cursor is not at an entry
   */
  public ValueView value() {
    requireEntry();
    return view;
  }

  private void requireEntry() {
    if (!isAtEntry) {
      throw new NoSuchElementException("the cursor is not at an entry: call next() first");
    }
  }
}
