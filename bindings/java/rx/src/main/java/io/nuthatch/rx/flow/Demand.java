package io.nuthatch.rx.flow;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** Counts the items that a subscriber has requested. The emitting thread waits for it. */
public final class Demand {

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private long left;
  private boolean isStopped;

  /** Adds two demands. {@code Long.MAX_VALUE} means unlimited. */
  public static long sum(long one, long other) {
    long sum = one + other;
    return sum < 0 ? Long.MAX_VALUE : sum;
  }

  /** Returns the failure for a request of less than one item. */
  public static IllegalArgumentException refusal(long n) {
    return new IllegalArgumentException("expected a request of 1 or more, found " + n);
  }

  /** Adds requested items. */
  public void add(long n) {
    lock.lock();
    try {
      left = sum(left, n);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Ends the demand: no more items are wanted. */
  public void stop() {
    lock.lock();
    try {
      isStopped = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Waits until an item is requested. Returns false if the demand has ended. */
  public boolean take() {
    lock.lock();
    try {
      while (left == 0 && !isStopped) {
        changed.awaitUninterruptibly();
      }
      if (isStopped) {
        return false;
      }
      if (left < Long.MAX_VALUE) {
        left--;
      }
      return true;
    } finally {
      lock.unlock();
    }
  }
}
