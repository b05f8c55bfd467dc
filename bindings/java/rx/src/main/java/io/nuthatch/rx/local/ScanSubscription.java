package io.nuthatch.rx.local;

import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.flow.DrainingSubscription;
import io.reactivex.rxjava3.annotations.Nullable;
import io.reactivex.rxjava3.operators.QueueSubscription;
import org.reactivestreams.Subscriber;

/**
 * A scan that is read by the thread that requests rows, or by polling if an operator of RxJava
 * supports that.
 */
final class ScanSubscription<T> extends DrainingSubscription<T>
    implements QueueSubscription<T>, Running {

  private final OpenStore store;
  private final ChunkReader<T> reader;
  /** The failure that {@link #isEmpty} found. */
  private Throwable met;

  ScanSubscription(Subscriber<? super T> subscriber, OpenStore store, ChunkReader<T> reader) {
    super(subscriber);
    this.store = store;
    this.reader = reader;
  }

  @Override
  public void fail(StoreException thrown) {
    stop(thrown);
  }

  @Override
  protected void release() {
    reader.close();
    store.running.remove(this);
  }

  @Override
  protected Found advance(boolean isRequested) throws Throwable {
    // Reading one chunk beyond what is requested finds the end when the last row was taken.
    if (!isRequested) {
      return Found.NOTHING_YET;
    }
    return read() ? Found.ITEMS : Found.END;
  }

  private boolean read() throws Throwable {
    boolean isMore = reader.read();
    give(reader.items, reader.count);
    return isMore;
  }

  @Override
  public int requestFusion(int mode) {
    if ((mode & SYNC) == 0) {
      return NONE;
    }
    becomePolled();
    return SYNC;
  }

  @Override
  public @Nullable T poll() throws Throwable {
    if (met != null) {
      throw met;
    }
    if ((isStopped() || !hasGiven()) && !pollChunk()) {
      return null;
    }
    return takeGiven();
  }

  private boolean pollChunk() throws Throwable {
    boolean isMore = false;
    try {
      isMore = !isStopped() && read();
    } finally {
      if (!isMore) {
        release();
      }
    }
    if (!isMore && failure() != null) {
      throw failure();
    }
    return isMore;
  }

  @Override
  public boolean isEmpty() {
    // A polling operator calls this to detect the end, so it must read ahead. `poll` throws a
    // failure that is found here.
    if (hasGiven() && !isStopped()) {
      return false;
    }
    try {
      return !pollChunk();
    } catch (Throwable thrown) {
      met = thrown;
      return false;
    }
  }

  @Override
  public void clear() {
    cancel();
  }

  @Override
  public boolean offer(T item) {
    throw new UnsupportedOperationException("a scan takes no rows");
  }

  @Override
  public boolean offer(T first, T second) {
    throw new UnsupportedOperationException("a scan takes no rows");
  }
}
