package io.nuthatch.rx.flow;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Scheduler;
import io.reactivex.rxjava3.disposables.Disposable;
import java.util.concurrent.atomic.AtomicReference;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/**
 * A stream of the items that some code emits. The code runs on a thread of its own, which waits
 * while no item is requested.
 */
public final class EmittingFlowable<T> extends Flowable<T> {

  /** The code of a stream. Returning completes the stream, throwing fails it. */
  @FunctionalInterface
  public interface Body<T> {
    /** Runs on a thread of the scheduler, once for each subscription. */
    void run(Emission<T> emission) throws Throwable;

    /** Called instead of {@link #run} if the stream was cancelled before it began. */
    default void skip() {}
  }

  private final Body<T> body;
  private final Scheduler scheduler;

  /** Creates a stream of the items that {@code body} emits, on a thread of {@code scheduler}. */
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

  /** Ends the code of a stream that was cancelled. */
  private static final class Unwanted extends Error {
    private static final long serialVersionUID = 1L;

    Unwanted() {
      super("the subscriber has cancelled", null, false, false);
    }
  }

  /** A subscription to the items that some code emits. */
  public static final class Emission<T> implements Subscription {

    private final Subscriber<? super T> subscriber;
    private final Demand demand = new Demand();
    private final AtomicReference<Disposable> onStop = new AtomicReference<>();
    private volatile boolean isCancelled;
    private volatile Throwable failure;

    Emission(Subscriber<? super T> subscriber) {
      this.subscriber = subscriber;
    }

    /** Waits until an item is requested, and emits this one. Throws if the stream was cancelled. */
    public void onNext(T item) {
      if (!demand.take()) {
        throw new Unwanted();
      }
      subscriber.onNext(item);
    }

    /** Returns whether the stream was cancelled or has failed. */
    public boolean isStopped() {
      return isCancelled || failure != null;
    }

    /**
     * Sets an action to run once when the stream is cancelled or fails; runs it now if that has
     * happened. It does not run after {@link #ended}.
     */
    public void onStop(Runnable action) {
      onStop.set(Disposable.fromRunnable(action));
      if (isStopped()) {
        stop();
      }
    }

    /** Removes the action of {@link #onStop}. */
    public void ended() {
      onStop.set(null);
    }

    /** Fails the stream from another thread. */
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
        // An `Error`, too: the thread is reused, and the subscriber waits for an end.
        thrown = any;
      }
      var reported = failure;
      if (isCancelled) {
        return;
      }
      if (reported != null || thrown != null) {
        Signals.error(subscriber, reported != null ? reported : thrown);
      } else {
        Signals.complete(subscriber);
      }
    }
  }
}
