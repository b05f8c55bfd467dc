package io.nuthatch.rx.flow;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Scheduler;
import io.reactivex.rxjava3.disposables.Disposable;
import java.util.concurrent.atomic.AtomicReference;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/**
 * A stream of what some code emits that runs on a thread of its own, and waits there until more is
 * asked for.
 */
public final class EmittingFlowable<T> extends Flowable<T> {

  /** The code of a stream. It ends the stream by returning, and fails it by throwing. */
  @FunctionalInterface
  public interface Body<T> {
    /** Runs on a thread of the scheduler, once for each subscription. */
    void run(Emission<T> emission) throws Throwable;

    /** In place of {@link #run}, where the stream was cancelled before. */
    default void skip() {}
  }

  private final Body<T> body;
  private final Scheduler scheduler;

  /** A stream of what {@code body} emits on a thread of {@code scheduler}. */
  public EmittingFlowable(Scheduler scheduler, Body<T> body) {
    this.scheduler = scheduler;
    this.body = body;
  }

  @Override
  protected void subscribeActual(Subscriber<? super T> subscriber) {
    var emission = new Emission<T>(subscriber);
    subscriber.onSubscribe(emission);
    scheduler.scheduleDirect(() -> emission.run(body));
  }

  /** Thrown through the code of a stream that nobody wants any more. */
  private static final class Unwanted extends Error {
    private static final long serialVersionUID = 1L;

    Unwanted() {
      super("the subscriber has cancelled", null, false, false);
    }
  }

  /** A subscription to what some code emits. */
  public static final class Emission<T> implements Subscription {

    private final Subscriber<? super T> subscriber;
    private final Demand demand = new Demand();
    private final AtomicReference<Disposable> onStop = new AtomicReference<>();
    private volatile boolean isCancelled;
    private volatile Throwable failure;

    Emission(Subscriber<? super T> subscriber) {
      this.subscriber = subscriber;
    }

    /** Emits an item when it is asked for. Does not return when nobody wants it any more. */
    public void onNext(T item) {
      if (!demand.take()) {
        throw new Unwanted();
      }
      subscriber.onNext(item);
    }

    /** Whether nobody wants more. */
    public boolean isStopped() {
      return isCancelled || failure != null;
    }

    /**
     * Has this run once when the stream is cancelled or failed, at once if it was; not after {@link
     * #ended}.
     */
    public void onStop(Runnable action) {
      onStop.set(Disposable.fromRunnable(action));
      if (isStopped()) {
        stop();
      }
    }

    /** What was to run when the stream is stopped need not any more, and does not run now. */
    public void ended() {
      onStop.set(null);
    }

    /** Fails the stream from outside of its code. */
    public void fail(Throwable thrown) {
      failure = thrown;
      stop();
    }

    @Override
    public void request(long n) {
      if (n > 0) {
        demand.add(n);
      } else {
        fail(Demand.refusal(n));
      }
    }

    @Override
    public void cancel() {
      isCancelled = true;
      stop();
    }

    private void stop() {
      demand.stop();
      var action = onStop.get();
      if (action != null) {
        action.dispose();
      }
    }

    void run(Body<T> body) {
      Throwable thrown = null;
      try {
        if (isStopped()) {
          body.skip();
        } else {
          body.run(this);
        }
      } catch (Throwable any) {
        // An `Error`, too: this thread goes on to others, and the subscriber waits for an end.
        thrown = any;
      }
      var told = failure;
      if (isCancelled) {
        return;
      }
      if (told != null || thrown != null) {
        Signals.error(subscriber, told != null ? told : thrown);
      } else {
        Signals.complete(subscriber);
      }
    }
  }
}
