package io.nuthatch.rx.flow;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/**
 * A subscription that emits items on the threads that request or deliver them, by the rules of
 * Reactive Streams.
 *
 * <ul>
 *   <li>One thread at a time emits. A thread that finds another one emitting returns at once, and
 *       the other one goes on for it.
 *   <li>No more items are emitted than were requested. A request of less than one fails the stream.
 *   <li>The stream ends once, by completion or by a failure, and not after it was cancelled.
 *   <li>What the subscriber throws fails the stream.
 * </ul>
 *
 * <p>A subclass says where items come from ({@link #advance}) and what to free at the end ({@link
 * #release}). Emitting allocates nothing.
 */
public abstract class DrainingSubscription<T> implements Subscription {

  /** What {@link #advance} has found. */
  protected enum Found {
    /** Items, which are those of {@link #give}. */
    ITEMS,
    /** No item yet: {@link #drain} is called when that has changed. */
    NOTHING_YET,
    /** The end of the stream. */
    END
  }

  private final Subscriber<? super T> subscriber;
  private final AtomicLong requested = new AtomicLong();
  /** Above zero while a thread emits, and for ever after the end. */
  private final AtomicInteger work = new AtomicInteger();

  private volatile boolean isCancelled;
  private volatile boolean isStopped;
  private volatile Throwable failure;
  private boolean isPolled;

  // Of the thread that emits.
  private T[] items;
  private int at;
  private int count;

  /** Emits to a subscriber. */
  protected DrainingSubscription(Subscriber<? super T> subscriber) {
    this.subscriber = subscriber;
  }

  /**
   * Looks for the next items, when all items before were emitted. Called by one thread at a time.
   * What it throws fails the stream.
   *
   * @param isRequested whether any item is requested; without a request only the end is looked for
   */
  protected abstract Found advance(boolean isRequested) throws Throwable;

  /** Frees what the stream holds. Called by any thread, several times, at the end or before. */
  protected abstract void release();

  /** Called for each request, before items are emitted. */
  protected void onRequest() {}

  /** Drops items that will not be emitted. Called by the thread that emits, at the end. */
  protected void discard() {}

  /** Hands over the first {@code length} elements of an array, to be emitted next. */
  protected final void give(T[] elements, int length) {
    items = elements;
    at = 0;
    count = length;
  }

  /** Returns the next of the items that were given, or {@code null} after the last. */
  protected final T takeGiven() {
    return at < count ? items[at++] : null;
  }

  /** Returns whether items that were given are left. */
  protected final boolean hasGiven() {
    return at < count;
  }

  /** Returns whether no more items are emitted. */
  protected final boolean isStopped() {
    return isStopped;
  }

  /** Returns why the stream fails, or {@code null} if it does not or was cancelled. */
  protected final Throwable failure() {
    return isCancelled ? null : failure;
  }

  @Override
  public final void request(long n) {
    if (n <= 0) {
      stop(Demand.refusal(n));
      return;
    }
    requested.accumulateAndGet(n, Demand::sum);
    onRequest();
    drain();
  }

  @Override
  public final void cancel() {
    isCancelled = true;
    isStopped = true;
    release();
  }

  /** Fails the stream, from any thread. Items that were not emitted are dropped. */
  protected final void stop(Throwable thrown) {
    failure = thrown;
    isStopped = true;
    release();
    drain();
  }

  /** Emits nothing from now on: the subscriber polls. Called before anything is requested. */
  protected final void becomePolled() {
    isPolled = true;
  }

  /** Emits what is requested and there, unless another thread does so already. */
  protected final void drain() {
    if (isPolled || work.getAndIncrement() != 0) {
      return;
    }
    int missed = 1;
    while (emit()) {
      missed = work.addAndGet(-missed);
      if (missed == 0) {
        return;
      }
    }
    // After the end the count stays above zero, so nothing is emitted from now on.
  }

  /** Emits what is requested and there; false when that was the end. */
  private boolean emit() {
    long wanted = requested.get();
    long emitted = 0;
    try {
      while (!isStopped) {
        if (at == count) {
          var found = advance(wanted > 0);
          if (found == Found.END) {
            return finish(failure);
          }
          if (found == Found.NOTHING_YET) {
            break;
          }
        } else if (emitted == wanted) {
          break;
        } else {
          emitted += emitSome((int) Math.min(wanted - emitted, count - at));
        }
      }
    } catch (Throwable thrown) {
      return finish(thrown);
    }
    if (isStopped) {
      return finish(failure);
    }
    if (emitted > 0 && wanted != Long.MAX_VALUE) {
      requested.addAndGet(-emitted);
    }
    return true;
  }

  private int emitSome(int max) {
    var given = items;
    int from = at;
    int i = 0;
    while (i < max && !isStopped) {
      subscriber.onNext(given[from + i]);
      i++;
    }
    at = from + i;
    return i;
  }

  private boolean finish(Throwable thrown) {
    isStopped = true;
    release();
    items = null;
    at = 0;
    count = 0;
    discard();
    if (isCancelled) {
      return false;
    }
    if (thrown == null) {
      Signals.complete(subscriber);
    } else {
      Signals.error(subscriber, thrown);
    }
    return false;
  }
}
