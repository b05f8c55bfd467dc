package io.nuthatch.rx.remote;

import io.reactivex.rxjava3.core.Flowable;
import java.util.function.Supplier;
import org.reactivestreams.Subscriber;

/** The items in the messages of a stream. Each subscription starts its own call. */
final class StreamFlowable<M, T> extends Flowable<T> {

  private final Calls calls;
  private final Supplier<Plan<M, T>> plans;

  StreamFlowable(Calls calls, Supplier<Plan<M, T>> plans) {
    this.calls = calls;
    this.plans = plans;
  }

  @Override
  protected void subscribeActual(Subscriber<? super T> subscriber) {
    var plan = plans.get();
    var subscription = new StreamSubscription<>(subscriber, calls, plan);
    subscriber.onSubscribe(subscription);
    subscription.begin();
    if (plan.saysThatItBegan()) {
      subscription.awaitBegun();
    }
  }
}
