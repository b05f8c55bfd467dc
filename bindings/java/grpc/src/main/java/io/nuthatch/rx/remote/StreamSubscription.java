package io.nuthatch.rx.remote;

import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.flow.Demand;
import io.nuthatch.rx.flow.Signals;
import io.reactivex.rxjava3.disposables.Disposable;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/**
 * A stream that somebody reads. Messages are asked for when items are, and {@link #AHEAD} of them
 * at most are here or on their way beyond the one that is being read: then the server waits.
 *
 * <p>Items are emitted by one thread at a time: whoever asks for some or brings a message, unless
 * another one is at it already, which then goes on.
 */
final class StreamSubscription<M, T> implements Subscription, Source.Sink<M>, Calls.Running {

  private static final int AHEAD = 2;

  private final Subscriber<? super T> subscriber;
  private final Calls calls;
  private final Plan<M, T> plan;
  private final AtomicInteger work = new AtomicInteger();
  private final AtomicLong requested = new AtomicLong();
  private final Queue<M> messages = new ConcurrentLinkedQueue<>();
  private final CountDownLatch begun = new CountDownLatch(1);

  // Of the thread that emits.
  private Plan.Chunk<T> chunk;
  private T next;

  // Under the lock of this.
  private Source<M> source;
  private boolean isAsking;
  private int awaited;
  private Disposable pause = Disposable.disposed();

  private final Losses losses;
  private volatile boolean isCancelled;
  private volatile Throwable thrown;
  /** How the source ended; set after its last message is in the queue. */
  private volatile End end;

  private record End(Failure failure) {}

  StreamSubscription(Subscriber<? super T> subscriber, Calls calls, Plan<M, T> plan) {
    this.subscriber = subscriber;
    this.calls = calls;
    this.plan = plan;
    this.losses = new Losses(calls.options);
  }

  void begin() {
    if (!calls.add(this)) {
      fail(Failure.closed());
      return;
    }
    open();
    if (plan.saysThatItBegan()) {
      ask();
    }
  }

  /** Waits until the first message has come, or none will. */
  void awaitBegun() {
    try {
      begun.await();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized void open() {
    if (isStopped()) {
      calls.remove(this);
      return;
    }
    source = plan.open();
    source.start(this);
    if (awaited > 0) {
      source.request(awaited);
    }
  }

  /** Has messages come from now on. */
  private synchronized void ask() {
    if (!isAsking) {
      isAsking = true;
      awaited = AHEAD;
      if (source != null) {
        source.request(AHEAD);
      }
    }
  }

  private synchronized void askForOneMore() {
    awaited++;
    if (source != null) {
      source.request(1);
    }
  }

  @Override
  public void request(long n) {
    if (n <= 0) {
      stop(new IllegalArgumentException("expected a request of 1 or more, found " + n));
      return;
    }
    requested.accumulateAndGet(n, Demand::sum);
    ask();
    drain();
  }

  @Override
  public void cancel() {
    isCancelled = true;
    release();
  }

  @Override
  public void fail(StoreException failure) {
    stop(failure);
  }

  private void stop(Throwable why) {
    thrown = why;
    release();
    drain();
  }

  private boolean isStopped() {
    return isCancelled || thrown != null;
  }

  private void release() {
    synchronized (this) {
      pause.dispose();
      if (source != null) {
        source.cancel();
        source = null;
      }
    }
    calls.remove(this);
    begun.countDown();
  }

  @Override
  public void message(M message) {
    synchronized (this) {
      awaited--;
      losses.clear();
      plan.came(message);
    }
    messages.add(message);
    begun.countDown();
    drain();
  }

  @Override
  public void end(Failure failure) {
    boolean isAgain = failure != null && failure.isPassing() && !calls.isClosed();
    synchronized (this) {
      source = null;
      boolean mayResume = isAgain && plan.mayResume() && !isStopped();
      if (mayResume && (plan.reconnects() ? losses.mayReconnect() : losses.mayTryAgain())) {
        pause = calls.again(losses.count(), this::open);
        return;
      }
    }
    end = new End(failure);
    begun.countDown();
    drain();
  }

  private void drain() {
    if (work.getAndIncrement() != 0) {
      return;
    }
    int missed = 1;
    while (emit()) {
      missed = work.addAndGet(-missed);
      if (missed == 0) {
        return;
      }
    }
    // The stream is over: whoever drains from now on finds the count above zero, and goes.
  }

  /** Emits what is asked for and there; false when that was the end. */
  private boolean emit() {
    long wanted = requested.get();
    long emitted = 0;
    try {
      while (!isStopped()) {
        var last = end;
        if (next == null && !advance()) {
          if (last != null) {
            return finish(last.failure);
          }
          break;
        }
        if (emitted == wanted) {
          break;
        }
        var item = next;
        next = null;
        subscriber.onNext(item);
        emitted++;
      }
    } catch (Throwable any) {
      // An `Error`, too: threads of the connection serve other calls, and this one has to end.
      thrown = any;
    }
    if (isStopped()) {
      return finish();
    }
    if (emitted > 0 && wanted != Long.MAX_VALUE) {
      requested.addAndGet(-emitted);
    }
    return true;
  }

  /** Looks for the next item; false where there is none here. */
  private boolean advance() throws Throwable {
    while (true) {
      if (chunk == null) {
        var message = messages.poll();
        if (message == null) {
          return false;
        }
        chunk = plan.read(message);
      }
      next = chunk.next();
      if (next != null) {
        return true;
      }
      chunk = null;
      askForOneMore();
    }
  }

  private boolean finish(Failure failure) {
    release();
    if (isCancelled) {
      return false;
    }
    if (failure != null) {
      Signals.error(subscriber, calls.told(failure));
    } else {
      Signals.complete(subscriber);
    }
    return false;
  }

  private boolean finish() {
    release();
    messages.clear();
    if (!isCancelled) {
      Signals.error(subscriber, thrown);
    }
    return false;
  }
}
