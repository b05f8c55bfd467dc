package io.nuthatch.rx.local;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** Counts the scans, read transactions and watches of a store that the library has open. */
final class OpenHandles {

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition none = lock.newCondition();
  private long open;

  void opened() {
    change(1);
  }

  void closed() {
    change(-1);
  }

  private void change(int by) {
    lock.lock();
    try {
      open += by;
      if (open == 0) {
        none.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Waits until none is open, up to a time limit. */
  void awaitNone(long ms) {
    lock.lock();
    try {
      long left = TimeUnit.MILLISECONDS.toNanos(ms);
      while (open > 0 && left > 0) {
        left = none.awaitNanos(left);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      lock.unlock();
    }
  }
}
