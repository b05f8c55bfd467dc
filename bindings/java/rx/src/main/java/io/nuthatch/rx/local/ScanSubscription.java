package io.nuthatch.rx.local;

import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.flow.Demand;
import io.nuthatch.rx.flow.Signals;
import io.reactivex.rxjava3.annotations.Nullable;
import io.reactivex.rxjava3.operators.QueueSubscription;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.reactivestreams.Subscriber;

/**
 * A scan that somebody reads, by asking for rows or, where an operator of RxJava can, by polling.
 * The thread that asks reads; others that ask meanwhile leave it to that thread.
 */
final class ScanSubscription<T> extends AtomicInteger implements QueueSubscription<T>, Running {

  private static final long serialVersionUID = 1L;

  private final transient Subscriber<? super T> subscriber;
  private final transient OpenStore store;
  private final transient ChunkReader<T> reader;
  private final AtomicLong requested = new AtomicLong();
  private transient int at;
  private boolean isPolled;
  /** Nobody wants more, or {@link #failure} is to be told. */
  private volatile boolean isStopped;

  private volatile boolean isCancelled;
  private volatile Throwable failure;
  /** What {@link #isEmpty} met. */
  private transient Throwable met;

  ScanSubscription(Subscriber<? super T> subscriber, OpenStore store, ChunkReader<T> reader) {
    this.subscriber = subscriber;
    this.store = store;
    this.reader = reader;
  }

  @Override
  public void request(long n) {
    if (n > 0) {
      requested.accumulateAndGet(n, Demand::sum);
      drain();
    } else {
      stopWith(new IllegalArgumentException("expected a request of 1 or more, found " + n));
    }
  }

  @Override
  public void cancel() {
    isCancelled = true;
    isStopped = true;
    end();
  }

  @Override
  public void fail(StoreException thrown) {
    stopWith(thrown);
  }

  private void stopWith(Throwable thrown) {
    failure = thrown;
    isStopped = true;
    reader.close();
    if (!isPolled) {
      drain();
    }
  }

  private void end() {
    reader.close();
    store.running.remove(this);
  }

  private void drain() {
    if (getAndIncrement() != 0) {
      return;
    }
    int missed = 1;
    while (emit()) {
      missed = addAndGet(-missed);
      if (missed == 0) {
        return;
      }
    }
    // The stream is over: whoever drains from now on finds the count above zero, and goes.
  }

  /** Emits what is asked for; false when that was the end. */
  private boolean emit() {
    long wanted = requested.get();
    long emitted = 0;
    while (true) {
      if (isStopped) {
        return finish(failure);
      }
      if (at == reader.count) {
        // Reading one chunk beyond what is asked for finds the end when the last row was taken.
        if (wanted == 0) {
          return true;
        }
        if (!read()) {
          return false;
        }
        continue;
      }
      if (emitted == wanted) {
        break;
      }
      long most = Math.min(wanted - emitted, reader.count - at);
      try {
        emitted += emitSome((int) most);
      } catch (Throwable thrown) {
        return finish(thrown);
      }
    }
    if (emitted > 0 && wanted != Long.MAX_VALUE) {
      requested.addAndGet(-emitted);
    }
    return true;
  }

  private int emitSome(int most) {
    var items = reader.items;
    int from = at;
    int i = 0;
    while (i < most && !isStopped) {
      subscriber.onNext(items[from + i]);
      i++;
    }
    at = from + i;
    return i;
  }

  /** Reads a chunk; false when there was none, and the subscriber knows. */
  private boolean read() {
    at = 0;
    try {
      if (reader.read()) {
        return true;
      }
    } catch (Throwable thrown) {
      return finish(thrown);
    }
    return isStopped ? finish(failure) : finish(null);
  }

  /** Ends the scan, and the stream unless it was cancelled. */
  private boolean finish(Throwable thrown) {
    end();
    if (!isCancelled) {
      if (thrown == null) {
        Signals.complete(subscriber);
      } else {
        Signals.error(subscriber, thrown);
      }
    }
    return false;
  }

  @Override
  public int requestFusion(int mode) {
    if ((mode & SYNC) == 0) {
      return NONE;
    }
    isPolled = true;
    return SYNC;
  }

  @Override
  public @Nullable T poll() throws Throwable {
    if (met != null) {
      throw met;
    }
    if ((isStopped || at == reader.count) && !pollChunk()) {
      return null;
    }
    return reader.items[at++];
  }

  private boolean pollChunk() throws Throwable {
    at = 0;
    boolean isMore = false;
    try {
      isMore = !isStopped && reader.read();
    } finally {
      if (!isMore) {
        end();
      }
    }
    if (!isMore) {
      var thrown = failure;
      if (thrown != null && !isCancelled) {
        throw thrown;
      }
    }
    return isMore;
  }

  @Override
  public boolean isEmpty() {
    // Who polls asks this to tell the end: so it has to look for it, and leaves a failure to
    // `poll`.
    if (at < reader.count && !isStopped) {
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
