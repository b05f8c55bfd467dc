package io.nuthatch.rx.flow;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** What a subscriber asked for, to be waited for by the thread that emits. */
public final class Demand {

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private long left;
  private boolean isStopped;

  /** Demands added up: there is no more than all. */
  public static long sum(long one, long other) {
    long sum = one + other;
    return sum < 0 ? Long.MAX_VALUE : sum;
  }

  /** Returns the failure of a stream of which less than one item was requested. */
  public static IllegalArgumentException refusal(long n) {
    return new IllegalArgumentException("expected a request of 1 or more, found " + n);
  }

  /** So many more are asked for. */
  public void add(long n) {
    lock.lock();
    try {
      left = sum(left, n);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Nothing is asked for any more. */
  public void stop() {
    lock.lock();
    try {
      isStopped = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Waits until one more is asked for; false where none will be. */
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
