package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A scan of the library, with access control: one thread at a time reads, between {@link #begin}
 * and {@link #end}. Any thread can close it: at once if no thread is reading, otherwise when that
 * reading ends. So rows are never freed while they are read.
 */
final class NativeScan {

  private static final int IDLE = 0;
  private static final int READING = 1;
  private static final int CLOSING = 2;
  private static final int CLOSED = 3;

  /** Opens the scan at the first reading. */
  interface Opening {
    long open();
  }

  private final OpenStore store;
  private final Opening opening;
  private final AtomicInteger state = new AtomicInteger(IDLE);
  private long handle;

  /** The address of the rows of the last batch, which are consecutive. */
  long rows;

  /** Number of rows of the last batch. */
  long count;

  NativeScan(OpenStore store, Opening opening) {
    this.store = store;
    this.opening = opening;
  }

  /** Creates the object for an open scan. */
  NativeScan(OpenStore store, long handle) {
    this(store, () -> handle);
    this.handle = handle;
    store.handles.opened();
  }

  /** Begins to read. Returns false if the scan is closed. */
  boolean begin() {
    return state.compareAndSet(IDLE, READING);
  }

  /** Ends a reading. Returns false if the scan was closed meanwhile. */
  boolean end() {
    if (state.compareAndSet(READING, IDLE)) {
      return true;
    }
    state.set(CLOSED);
    closeHandle();
    return false;
  }

  /**
   * Reads the next batch, between {@link #begin} and {@link #end}. It has no rows after the last
   * one.
   */
  void next() {
    var scratch = Scratch.ofThread();
    if (handle == 0) {
      handle = opening.open();
      store.handles.opened();
      scratch = Scratch.ofThread();
    }
    MemorySegment out = scratch.take(16);
    Native.scanNext(handle, out, out.asSlice(8), scratch);
    rows = out.get(JAVA_LONG, 0);
    count = out.get(JAVA_LONG, 8);
  }

  void close() {
    while (true) {
      int now = state.get();
      if (now == IDLE && state.compareAndSet(IDLE, CLOSED)) {
        closeHandle();
        return;
      }
      if (now >= CLOSING || now == READING && state.compareAndSet(READING, CLOSING)) {
        return;
      }
    }
  }

  private void closeHandle() {
    long open = handle;
    handle = 0;
    if (open != 0) {
      Native.closeScan(open, Scratch.ofThread());
      store.handles.closed();
    }
  }
}
