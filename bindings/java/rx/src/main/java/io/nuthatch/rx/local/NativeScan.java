package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A scan of the library, and who may touch it: one thread reads at a time, between {@link #begin}
 * and {@link #end}; any thread closes it, at once where nobody reads and otherwise as soon as that
 * reading ends. So rows never go while they are looked at.
 */
final class NativeScan {

  private static final int IDLE = 0;
  private static final int READING = 1;
  private static final int CLOSING = 2;
  private static final int CLOSED = 3;

  /** Opens the scan when it is first read. */
  interface Opening {
    long open();
  }

  private final OpenStore store;
  private final Opening opening;
  private final AtomicInteger state = new AtomicInteger(IDLE);
  private long handle;

  /** Where the rows of the last batch lie, one after the other. */
  long rows;

  /** How many there are. */
  long count;

  NativeScan(OpenStore store, Opening opening) {
    this.store = store;
    this.opening = opening;
  }

  /** A scan that is open already. */
  NativeScan(OpenStore store, long handle) {
    this(store, () -> handle);
    this.handle = handle;
    store.handles.opened();
  }

  /** Begins to read; false where the scan is closed. */
  boolean begin() {
    return state.compareAndSet(IDLE, READING);
  }

  /** Reads no more for now; false where the scan was closed meanwhile. */
  boolean end() {
    if (state.compareAndSet(READING, IDLE)) {
      return true;
    }
    state.set(CLOSED);
    closeHandle();
    return false;
  }

  /** Within reading: the next batch, which has no rows after the last. */
  void next() {
    var scratch = Scratch.mine();
    if (handle == 0) {
      handle = opening.open();
      store.handles.opened();
      scratch = Scratch.mine();
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
      Native.closeScan(open, Scratch.mine());
      store.handles.closed();
    }
  }
}
