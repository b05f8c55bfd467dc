package io.nuthatch.snapshot;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.function.BiFunction;

/**
 * Polls for new files, switches readers to them and reports events.
 *
 * <p>There are three locks. A thread that holds several takes them in this order: {@code pollLock},
 * held while a file is identified, opened and verified; this object, held briefly for the status
 * and the events; the generations. The callback is called without any of them.
 */
final class Follower {

  /** Maximum number of polls that are skipped before a file that failed is retried. */
  private static final int MAX_SKIPPED_POLLS = 63;

  /**
   * Classes that a poll needs when it fails. They are loaded with this one, because a process
   * without free descriptors may be unable to load them when it needs them.
   */
  private static final List<Class<?>> LOADED =
      List.of(Rejected.class, WatchEvent.Rejected.class, WatchEvent.Switched.class);

  private final Path path;
  private final WatchOptions options;
  private final BiFunction<Path, OpenOptions, Snapshot> opener;
  private final Object pollLock = new Object();
  private final Queue<WatchEvent> events = new ArrayDeque<>();
  private WatchStatus status;

  /** Whether a thread is calling the callback. It also reports events that are added meanwhile. */
  private boolean isDelivering;

  /** The file that readers read. */
  private FileIdentity currentFile;

  /** The file that cannot be used, or {@code null}. */
  private Rejected rejected;

  final Generations generations;

  /**
   * A file that cannot be used.
   *
   * @param file the file
   * @param error why
   * @param failures number of failures
   * @param pollsToSkip number of polls before the next retry
   */
  private record Rejected(
      FileIdentity file, SnapshotException error, int failures, int pollsToSkip) {

    /** Returns whether a retry may succeed: after a failed system call, not after damage. */
    boolean isTransient() {
      return error.code().equals("io") || error.code().equals("unreadable");
    }
  }

  Follower(Path path, WatchOptions options) {
    this(path, options, Snapshot::open);
  }

  Follower(Path path, WatchOptions options, BiFunction<Path, OpenOptions, Snapshot> opener) {
    this.path = path;
    this.options = options;
    this.opener = opener;
    // Identified before it is opened: if the file is replaced in between, the first poll opens it.
    currentFile = FileIdentity.of(path);
    generations = new Generations(opener.apply(path, options.open()));
    status = new WatchStatus(path, 0, 0, Optional.empty(), Optional.empty());
  }

  synchronized WatchStatus status() {
    return status;
  }

  /**
   * Polls for a new file. Returns whether readers switch.
   *
   * @param isRetry whether a file that was rejected before is retried at once
   */
  boolean poll(boolean isRetry) {
    boolean isSwitched;
    synchronized (pollLock) {
      isSwitched = openNewest(isRetry);
      generations.reclaim();
    }
    deliver();
    return isSwitched;
  }

  /**
   * Polls as the thread of the watch does. An error of the virtual machine, such as {@link
   * OutOfMemoryError}, is kept in the status, and the next poll tries again.
   */
  void pollInBackground() {
    try {
      poll(false);
    } catch (Throwable e) {
      reject(SnapshotException.io(path, "watch", new IOException(e)));
      deliver();
    }
  }

  private boolean openNewest(boolean isRetry) {
    FileIdentity file;
    try {
      file = FileIdentity.of(path);
    } catch (SnapshotException e) {
      reject(e);
      return false;
    }
    if (file.equals(currentFile)) {
      rejected = null;
      setError(Optional.empty());
      return false;
    }
    var before = rejected != null && rejected.file().equals(file) ? rejected : null;
    if (before != null && !isRetry && (!before.isTransient() || before.pollsToSkip() > 0)) {
      int left = Math.max(before.pollsToSkip() - 1, 0);
      rejected = new Rejected(file, before.error(), before.failures(), left);
      setError(Optional.of(before.error()));
      return false;
    }
    return open(file, before == null ? 0 : before.failures());
  }

  private boolean open(FileIdentity file, int failures) {
    try {
      var snapshot = opener.apply(path, options.open());
      generations.replace(snapshot);
      currentFile = file;
      rejected = null;
      switched(snapshot);
      return true;
    } catch (SnapshotException e) {
      int skipped = Math.min(1 << Math.min(failures, 16), MAX_SKIPPED_POLLS + 1) - 1;
      rejected = new Rejected(file, e, failures + 1, skipped);
      reject(e);
      return false;
    }
  }

  private synchronized void switched(Snapshot snapshot) {
    status = status.switchedOnce();
    events.add(new WatchEvent.Switched(snapshot));
  }

  private synchronized void setError(Optional<SnapshotException> error) {
    status = status.withError(error);
  }

  private synchronized void reject(SnapshotException error) {
    // A missing file is reported once, not at every poll.
    var before = status.error().map(Throwable::getMessage);
    if (!before.equals(Optional.of(error.getMessage()))) {
      status = status.rejectedOnce(error);
      events.add(new WatchEvent.Rejected(error));
    }
  }

  /**
   * Calls the callback for all events, unless a thread is doing that already. It may be this
   * thread, if the callback polls.
   */
  private void deliver() {
    synchronized (this) {
      if (isDelivering) {
        return;
      }
      isDelivering = true;
    }
    for (var event = nextEvent(); event != null; event = nextEvent()) {
      try {
        options.report().accept(event);
      } catch (Throwable e) {
        recordCallbackError(e);
      }
    }
  }

  /** Returns the next event. Ends the delivery if there is none. */
  private synchronized WatchEvent nextEvent() {
    var event = events.poll();
    isDelivering = event != null;
    return event;
  }

  private synchronized void recordCallbackError(Throwable thrown) {
    status = status.withCallbackError(thrown);
  }
}
