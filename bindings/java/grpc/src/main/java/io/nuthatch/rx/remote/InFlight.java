package io.nuthatch.rx.remote;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** Counts operations in progress. */
final class InFlight {

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition none = lock.newCondition();
  private long count;

  void begin() {
    lock.lock();
    try {
      count++;
    } finally {
      lock.unlock();
    }
  }

  void end() {
    lock.lock();
    try {
      count--;
      if (count == 0) {
        none.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Waits until no operation is in progress, up to a time limit. */
  void awaitNone(long maxMs) {
    lock.lock();
    try {
      long left = TimeUnit.MILLISECONDS.toNanos(maxMs);
      while (count > 0 && left > 0) {
        left = none.awaitNanos(left);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } finally {
      lock.unlock();
    }
  }
}
