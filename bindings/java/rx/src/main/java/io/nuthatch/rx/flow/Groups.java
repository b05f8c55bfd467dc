package io.nuthatch.rx.flow;

import io.nuthatch.rx.BatchPolicy;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/**
 * Emits items in groups: up to a maximum number, or those that arrived within a time limit. Items
 * are requested as groups are requested, so a group that is not full is emitted when its time limit
 * has passed.
 */
final class Groups<T> extends Flowable<List<T>> {

  private final Publisher<T> items;
  private final BatchPolicy policy;

  Groups(Publisher<T> items, BatchPolicy policy) {
    this.items = items;
    this.policy = policy;
  }

  @Override
  protected void subscribeActual(Subscriber<? super List<T>> subscriber) {
    items.subscribe(new Grouping<>(subscriber, policy));
  }

  /**
   * Emits groups. For each requested group it requests as many items as a group can have, minus
   * items that were requested for an earlier group which was emitted before it was full.
   */
  private static final class Grouping<T> implements Subscriber<T>, Subscription {

    private final Subscriber<? super List<T>> subscriber;
    private final int maxItems;
    private final long lingerNanos;
    private final ReentrantLock lock = new ReentrantLock();
    private Subscription upstream;
    private List<T> group = new ArrayList<>();
    /** The number of the current group, so that an old timer does not end it. */
    private long number;

    private long groupsWanted;
    private long itemsWanted;
    /** Whether the group is emitted as soon as one is requested, even if it is not full. */
    private boolean isDue;

    /** The terminal signal, emitted after the last group. */
    private Runnable end;

    private Disposable timer = Disposable.disposed();

    Grouping(Subscriber<? super List<T>> subscriber, BatchPolicy policy) {
      this.subscriber = subscriber;
      this.maxItems = policy.groupItems();
      this.lingerNanos = policy.linger().toNanos();
    }

    @Override
    public void onSubscribe(Subscription subscription) {
      upstream = subscription;
      subscriber.onSubscribe(this);
    }

    @Override
    public void request(long n) {
      if (n <= 0) {
        upstream.cancel();
        onError(Demand.refusal(n));
        return;
      }
      long more;
      lock.lock();
      try {
        groupsWanted = Demand.sum(groupsWanted, n);
        boolean isUnbounded = groupsWanted > Long.MAX_VALUE / maxItems;
        long wanted = isUnbounded ? Long.MAX_VALUE : groupsWanted * maxItems;
        more = wanted - itemsWanted - group.size();
        itemsWanted += Math.max(0, more);
        if (isDue) {
          emit();
        }
      } finally {
        lock.unlock();
      }
      if (more > 0) {
        upstream.request(more);
      }
    }

    @Override
    public void cancel() {
      upstream.cancel();
      timer.dispose();
    }

    @Override
    public void onNext(T item) {
      lock.lock();
      try {
        group.add(item);
        itemsWanted--;
        if (group.size() == maxItems) {
          emit();
        } else if (group.size() == 1) {
          startTimer();
        }
      } finally {
        lock.unlock();
      }
    }

    private void startTimer() {
      long expected = number;
      Runnable end = () -> timeIsOver(expected);
      timer =
          Schedulers.computation().scheduleDirect(end, lingerNanos, TimeUnit.NANOSECONDS);
    }

    private void timeIsOver(long expected) {
      lock.lock();
      try {
        if (number == expected) {
          emit();
        }
      } finally {
        lock.unlock();
      }
    }

    /**
     * Emits the group if one is requested, and then the terminal signal if there is one. Called
     * with the lock.
     */
    private void emit() {
      isDue = true;
      if (!group.isEmpty()) {
        if (groupsWanted == 0) {
          return;
        }
        timer.dispose();
        number++;
        if (groupsWanted < Long.MAX_VALUE) {
          groupsWanted--;
        }
        var full = group;
        group = new ArrayList<>();
        subscriber.onNext(full);
      }
      isDue = false;
      if (end != null) {
        var last = end;
        end = null;
        last.run();
      }
    }

    @Override
    public void onError(Throwable thrown) {
      end(() -> subscriber.onError(thrown));
    }

    @Override
    public void onComplete() {
      end(subscriber::onComplete);
    }

    private void end(Runnable last) {
      lock.lock();
      try {
        timer.dispose();
        number++;
        end = last;
        emit();
      } finally {
        lock.unlock();
      }
    }
  }
}
