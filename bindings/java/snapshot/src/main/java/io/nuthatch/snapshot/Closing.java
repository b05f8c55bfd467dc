package io.nuthatch.snapshot;

import java.lang.foreign.Arena;
import java.util.concurrent.locks.LockSupport;

/** Closes arenas that system calls may be using. */
final class Closing {

  private static final long RETRY_NANOS = 10_000_000;

  private Closing() {}

  /** Closes an arena, now or after the system calls that are using it. */
  static void close(Arena arena) {
    if (!tryClose(arena)) {
      Thread.ofPlatform().daemon().name("nuthatch-close").start(() -> closeLater(arena));
    }
  }

  private static void closeLater(Arena arena) {
    while (!tryClose(arena)) {
      LockSupport.parkNanos(RETRY_NANOS);
    }
  }

  /** Closes an arena unless a system call is using it. Returns whether it is closed. */
  private static boolean tryClose(Arena arena) {
    try {
      arena.close();
      return true;
    } catch (IllegalStateException e) {
      return !arena.scope().isAlive(); // Closed before, or in use.
    }
  }
}
