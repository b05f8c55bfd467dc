package io.nuthatch.rx.flow;

import io.reactivex.rxjava3.core.SingleEmitter;
import io.reactivex.rxjava3.core.SingleObserver;
import io.reactivex.rxjava3.plugins.RxJavaPlugins;
import org.reactivestreams.Subscriber;

/**
 * Signals to subscribers from threads that serve others, too. Whatever a subscriber throws, an
 * {@link Error} included, goes to {@link RxJavaPlugins#onError} and the thread goes on.
 */
public final class Signals {

  private Signals() {}

  /** Runs code that signals a subscriber. */
  public static void deliver(Runnable signal) {
    try {
      signal.run();
    } catch (Throwable thrown) {
      report(thrown);
    }
  }

  /** Ends a stream. */
  public static void complete(Subscriber<?> subscriber) {
    deliver(subscriber::onComplete);
  }

  /** Fails a stream. */
  public static void error(Subscriber<?> subscriber, Throwable failure) {
    deliver(() -> subscriber.onError(failure));
  }

  /** Answers one who waits for one thing. */
  public static <T> void success(SingleEmitter<T> emitter, T answer) {
    deliver(() -> emitter.onSuccess(answer));
  }

  /** Fails one who waits for one thing, unless it waits no more. */
  public static void error(SingleEmitter<?> emitter, Throwable failure) {
    deliver(() -> emitter.tryOnError(failure));
  }

  /** Answers one who waits for one thing. */
  public static <T> void success(SingleObserver<? super T> observer, T answer) {
    deliver(() -> observer.onSuccess(answer));
  }

  /** Fails one who waits for one thing. */
  public static void error(SingleObserver<?> observer, Throwable failure) {
    deliver(() -> observer.onError(failure));
  }

  /** Reports what a subscriber threw. */
  public static void report(Throwable thrown) {
    try {
      RxJavaPlugins.onError(thrown);
    } catch (Throwable handlers) {
      // The handler of errors failed, too: there is no one left to report it to.
    }
  }
}
