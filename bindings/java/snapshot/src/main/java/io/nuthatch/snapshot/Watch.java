package io.nuthatch.snapshot;

import java.nio.file.Path;
import java.time.Duration;

/**
 * Follows the files that replace each other at a path, and serves the newest one that can be
 * opened. Replace a file by renaming another over it. Any number of threads can use a watch; each
 * needs a {@link WatchReader} of its own.
 *
 * <p>
 *
 * {@snippet :
 * try (var watch = Watch.open(Path.of("features.nut"));
 *     var reader = watch.reader()) {
 *   String name = reader.current().getString("user:1.name");
 * }
 * }
 *
 * <p>If the newest file cannot be opened, readers keep the old one, and {@link #status} has the
 * error. An old file is unmapped at the first poll after every reader of it has called {@link
 * WatchReader#current} again or is unreachable, or when its last reader is closed.
 */
public final class Watch implements AutoCloseable {

  private final Follower follower;
  private final Duration interval;

  /** The thread that polls, or {@code null} if none does. */
  private final Thread thread;

  /** Whether the watch is closed. Guarded by this object. */
  private boolean isClosed;

  private Watch(Path path, WatchOptions options) {
    follower = new Follower(path, options);
    interval = options.interval();
    thread =
        interval.isZero()
            ? null
            : Thread.ofPlatform().daemon().name("nuthatch-watch").unstarted(this::run);
  }

  /**
   * Opens the file at a path and watches the path with the default options.
   *
   * @param path the path of a file or of the manifest of a set
   * @return the watch
   * @throws SnapshotException if the first file cannot be opened
   */
  public static Watch open(Path path) {
    return open(path, WatchOptions.defaults());
  }

  /**
   * Opens the file at a path and watches the path.
   *
   * @param path the path of a file or of the manifest of a set
   * @param options the options
   * @return the watch
   * @throws SnapshotException if the first file cannot be opened, or does not verify if the options
   *     require that
   */
  public static Watch open(Path path, WatchOptions options) {
    var watch = new Watch(path, options);
    if (watch.thread != null) {
      watch.thread.start();
    }
    return watch;
  }

  /**
   * Returns a reader for one thread. After {@link #close}, its snapshot is closed.
   *
   * @return the reader
   */
  public WatchReader reader() {
    return new WatchReader(follower.generations);
  }

  /**
   * Polls for a new file now. Retries a file that was rejected before; if it is rejected again,
   * {@link #status} has the error. Waits while another thread opens or verifies a file.
   *
   * @return whether the watch switched to a new file
   * @throws SnapshotClosedException if the watch is closed
   */
  public boolean refresh() {
    synchronized (this) {
      if (isClosed) {
        throw new SnapshotClosedException("the watch of " + status().path(), null);
      }
    }
    return follower.poll(true);
  }

  /**
   * Returns the status of the watch. Does not wait while a file is opened or verified.
   *
   * @return the status
   */
  public WatchStatus status() {
    return follower.status();
  }

  /**
   * Ends the watch and closes all its snapshots: lookups of readers then throw {@link
   * SnapshotClosedException}. Waits for a poll of the thread of the watch, unless that thread calls
   * this method in the callback. Further calls have no effect.
   */
  @Override
  public void close() {
    synchronized (this) {
      isClosed = true;
      notifyAll();
    }
    if (thread != null && thread != Thread.currentThread()) {
      joinUninterruptibly();
    }
    follower.generations.close();
  }

  private void joinUninterruptibly() {
    boolean isInterrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        isInterrupted = true;
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void run() {
    while (waitForInterval()) {
      follower.pollInBackground();
    }
  }

  /** Waits for the interval. Returns whether the watch is still open. */
  private synchronized boolean waitForInterval() {
    long end = System.nanoTime() + interval.toNanos();
    long left = interval.toNanos();
    while (!isClosed && left > 0) {
      try {
        wait(left / 1_000_000, (int) (left % 1_000_000));
      } catch (InterruptedException e) {
        // Nothing interrupts this thread; a stray interrupt ends the wait early.
        return !isClosed;
      }
      left = end - System.nanoTime();
    }
    return !isClosed;
  }
}
