package io.nuthatch.rx.remote;

import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.flow.DrainingSubscription;
import io.reactivex.rxjava3.disposables.Disposable;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.reactivestreams.Subscriber;

/**
 * A subscription to the items in the messages of a server. Messages are requested when items are.
 * At most {@link #AHEAD} messages are received or requested beyond the one that is being read; then
 * the server waits. The threads that request items or deliver messages emit the items.
 */
final class StreamSubscription<M, T> extends DrainingSubscription<T>
    implements Source.Sink<M>, Calls.Running {

  private static final int AHEAD = 2;

  private final Calls calls;
  private final Plan<M, T> plan;
  private final Queue<M> messages = new ConcurrentLinkedQueue<>();
  private final CountDownLatch begun = new CountDownLatch(1);

  // Used only by the emitting thread.
  private Plan.Chunk<T> chunk;
  private final T[] next = oneItem();

  // Guarded by the lock of this object.
  private Source<M> source;
  private boolean isAsking;
  private int awaited;
  private Disposable pause = Disposable.disposed();

  private final Losses losses;
  /** How the source ended; set after its last message is in the queue. */
  private volatile End end;

  private record End(Failure failure) {}

  StreamSubscription(Subscriber<? super T> subscriber, Calls calls, Plan<M, T> plan) {
    super(subscriber);
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

  /** Waits until the first message has arrived, or the stream has ended. */
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

  /** Starts requesting messages. */
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
  protected void onRequest() {
    ask();
  }

  @Override
  public void fail(StoreException failure) {
    stop(failure);
  }

  @Override
  protected void release() {
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
    boolean isAgain = failure != null && failure.isTransient() && !calls.isClosed();
    synchronized (this) {
      source = null;
      boolean mayResume = isAgain && plan.mayResume() && !isStopped();
      if (mayResume && (plan.reconnects() ? losses.mayReconnect() : losses.mayTryAgain())) {
        pause = calls.again(losses.count(), this::open);
        return;
      }
    }
    end = new End(failure == null ? null : described(failure));
    begun.countDown();
    drain();
  }

  private Failure described(Failure last) {
    return new Failure(losses.described(last.exception()), last.isTransient());
  }

  @Override
  protected Found advance(boolean isRequested) throws Throwable {
    // The end is set after the last message: it is read before the messages are.
    var last = end;
    if (readNext()) {
      give(next, 1);
      return Found.ITEMS;
    }
    if (last == null) {
      return Found.NOTHING_YET;
    }
    if (last.failure != null) {
      throw calls.exceptionFor(last.failure);
    }
    return Found.END;
  }

  /** Reads the next item. Returns false if the message has no more. */
  private boolean readNext() throws Throwable {
    while (true) {
      if (chunk == null) {
        var message = messages.poll();
        if (message == null) {
          return false;
        }
        chunk = plan.read(message);
      }
      next[0] = chunk.next();
      if (next[0] != null) {
        return true;
      }
      chunk = null;
      askForOneMore();
    }
  }

  @Override
  protected void discard() {
    messages.clear();
  }

  @SuppressWarnings("unchecked")
  private static <T> T[] oneItem() {
    return (T[]) new Object[1];
  }
}
