package io.nuthatch.rx.flow;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.FlowableSubscriber;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.core.SingleEmitter;
import io.reactivex.rxjava3.core.SingleObserver;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.functions.Consumer;
import io.reactivex.rxjava3.functions.Supplier;
import io.reactivex.rxjava3.plugins.RxJavaPlugins;
import java.util.concurrent.atomic.AtomicInteger;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/**
 * Signals to subscribers from threads that are shared by several subscribers.
 *
 * <p>A subscriber that throws, an {@link Error} included, does not end such a thread. The throwable
 * is passed once to {@code onError} of the same subscriber, which may be an operator with a
 * subscriber of its own that still waits. What {@code onError} throws, and what it cannot receive,
 * goes to {@link RxJavaPlugins#onError}.
 */
public final class Signals {

  /** RxJava's adapter for subscribers of other libraries, in a package that it does not export. */
  private static final String ADAPTER =
      "io.reactivex.rxjava3.internal.subscribers.StrictSubscriber";

  private Signals() {}

  /** Runs code that signals subscribers, and reports what it throws. */
  public static void deliver(Runnable signal) {
    try {
      signal.run();
    } catch (Throwable thrown) {
      report(thrown);
    }
  }

  /** Completes a stream. */
  public static void complete(Subscriber<?> subscriber) {
    try {
      subscriber.onComplete();
    } catch (Throwable thrown) {
      fail(subscriber, thrown);
    }
  }

  /** Fails a stream. */
  public static void error(Subscriber<?> subscriber, Throwable failure) {
    if (isStuck(subscriber)) {
      report(failure);
    } else {
      deliver(() -> subscriber.onError(failure));
    }
  }

  /**
   * Passes the result of an operation to its caller. The emitter takes no further signal, so its
   * downstream must be {@linkplain #guard(Single) guarded}.
   */
  public static <T> void success(SingleEmitter<T> emitter, T result) {
    deliver(() -> emitter.onSuccess(result));
  }

  /** Fails an operation, unless its caller has disposed of it. */
  public static void error(SingleEmitter<?> emitter, Throwable failure) {
    deliver(() -> emitter.tryOnError(failure));
  }

  /** Passes the result of an operation to its observer. */
  public static <T> void success(SingleObserver<? super T> observer, T result) {
    try {
      observer.onSuccess(result);
    } catch (Throwable thrown) {
      deliver(observer::onError, thrown);
    }
  }

  /** Fails an operation. */
  public static void error(SingleObserver<?> observer, Throwable failure) {
    deliver(() -> observer.onError(failure));
  }

  /**
   * Returns a stream whose subscribers may throw: one that throws is cancelled and receives the
   * throwable, and nothing after it. Operators of RxJava between a shared thread and a subscriber
   * would not pass an {@link Error} on, and would stop in the middle of a signal.
   */
  public static <T> Flowable<T> guard(Flowable<T> stream) {
    return stream.lift(GuardedSubscriber::new);
  }

  /** Returns an operation whose observers may throw: one that throws receives the throwable. */
  public static <T> Single<T> guard(Single<T> operation) {
    return operation.lift(GuardedObserver::new);
  }

  /**
   * Returns the stream that a function of the caller makes, or one that fails with what the
   * function throws. RxJava throws an {@link Error} on the thread that runs the function, and the
   * subscriber receives no end.
   */
  public static <T> Flowable<T> caught(Supplier<? extends Publisher<? extends T>> function) {
    try {
      return Flowable.fromPublisher(function.get());
    } catch (Throwable thrown) {
      return Flowable.error(thrown);
    }
  }

  /** Passes a throwable to the global error handler of RxJava. */
  public static void report(Throwable thrown) {
    try {
      RxJavaPlugins.onError(thrown);
    } catch (Throwable handlers) {
      // The global error handler failed: no other one is left.
    }
  }

  /** Passes what a subscriber threw to its {@code onError}. */
  private static void fail(Subscriber<?> subscriber, Throwable thrown) {
    if (isStuck(subscriber)) {
      report(thrown);
    } else {
      deliver(subscriber::onError, thrown);
    }
  }

  private static void deliver(Consumer<Throwable> onError, Throwable thrown) {
    try {
      onError.accept(thrown);
    } catch (Throwable second) {
      report(thrown);
      if (second != thrown) {
        report(second);
      }
    }
  }

  /**
   * Returns whether a subscriber drops signals: RxJava's adapter does, without a report, once the
   * subscriber behind it has thrown in {@code onNext}. The adapter is a counter of the signals in
   * progress.
   */
  private static boolean isStuck(Subscriber<?> subscriber) {
    return subscriber instanceof AtomicInteger inProgress
        && inProgress.get() != 0
        && subscriber.getClass().getName().equals(ADAPTER);
  }

  private static final class GuardedSubscriber<T> implements FlowableSubscriber<T> {

    private final Subscriber<? super T> downstream;
    private Subscription upstream;
    private boolean hasFailed;

    GuardedSubscriber(Subscriber<? super T> downstream) {
      this.downstream = downstream;
    }

    @Override
    public void onSubscribe(Subscription subscription) {
      upstream = subscription;
      downstream.onSubscribe(subscription);
    }

    @Override
    public void onNext(T item) {
      if (hasFailed) {
        return;
      }
      try {
        downstream.onNext(item);
      } catch (Throwable thrown) {
        hasFailed = true;
        upstream.cancel();
        fail(downstream, thrown);
      }
    }

    @Override
    public void onError(Throwable failure) {
      if (hasFailed) {
        report(failure);
      } else {
        error(downstream, failure);
      }
    }

    @Override
    public void onComplete() {
      if (!hasFailed) {
        complete(downstream);
      }
    }
  }

  private record GuardedObserver<T>(SingleObserver<? super T> downstream)
      implements SingleObserver<T> {

    @Override
    public void onSubscribe(Disposable upstream) {
      downstream.onSubscribe(upstream);
    }

    @Override
    public void onSuccess(T result) {
      success(downstream, result);
    }

    @Override
    public void onError(Throwable failure) {
      error(downstream, failure);
    }
  }
}
