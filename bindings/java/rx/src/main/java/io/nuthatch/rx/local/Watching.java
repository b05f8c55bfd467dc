package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Change;
import io.nuthatch.rx.StoreClosedException;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.Watch;
import io.nuthatch.rx.flow.EmittingFlowable;
import io.nuthatch.rx.flow.EmittingFlowable.Emission;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Scheduler;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Watches of a local store. Each waits on a thread of its own. While no change is requested it
 * reads none, and holds no transaction.
 */
final class Watching {

  private static final long WAIT_MS = 3_600_000;
  private static final Scheduler THREADS =
      Schedulers.from(
          task -> Thread.ofPlatform().daemon().name("nuthatch-watch").start(task), false, false);

  private static final long EACH = Layouts.CHANGE.byteSize();
  private static final long EXPIRES = Layouts.at(Layouts.CHANGE, "expires_at_ms");
  private static final long TABLE = Layouts.at(Layouts.CHANGE, "table");
  private static final long KEY = Layouts.at(Layouts.CHANGE, "key");
  private static final long VALUE = Layouts.at(Layouts.CHANGE, "value");
  private static final long TABLE_LEN = Layouts.at(Layouts.CHANGE, "table_len");
  private static final long KEY_LEN = Layouts.at(Layouts.CHANGE, "key_len");
  private static final long VALUE_LEN = Layouts.at(Layouts.CHANGE, "value_len");
  private static final long OPERATION = Layouts.at(Layouts.CHANGE, "operation");

  private Watching() {}

  static Flowable<Change> of(OpenStore store, Watch watch) {
    // Opened by the subscription itself: "now" is the time of the subscription.
    return Flowable.defer(
        () -> {
          long handle = open(store, watch);
          return new EmittingFlowable<>(THREADS, new Following(store, handle));
        });
  }

  /** An open watch, until its stream has ended. */
  private record Following(OpenStore store, long handle) implements EmittingFlowable.Body<Change> {
    @Override
    public void run(Emission<Change> emission) {
      follow(store, handle, emission);
    }

    @Override
    public void skip() {
      close(store, handle);
    }
  }

  private static long open(OpenStore store, Watch watch) {
    store.check();
    long table = watch.table().isPresent() ? store.tableHandle(watch.table().get()) : 0;
    var scratch = Scratch.ofThread();
    var out = scratch.take(8);
    int start =
        switch (watch.start()) {
          case Watch.Now now -> 0;
          case Watch.After after -> 1;
          case Watch.Oldest oldest -> 2;
        };
    long after = watch.start() instanceof Watch.After(long sequence) ? sequence : 0;
    var range = scratch.range(watch.range());
    Native.openWatch(store.handle, table, range, start, after, out, scratch);
    store.handles.opened();
    return out.get(JAVA_LONG, 0);
  }

  private static void close(OpenStore store, long handle) {
    Native.closeWatch(handle, Scratch.ofThread());
    store.handles.closed();
  }

  private static void follow(OpenStore store, long handle, Emission<Change> emission) {
    Running running = emission::fail;
    store.running.add(running);
    emission.onStop(() -> stop(handle));
    try {
      while (!emission.isStopped()) {
        next(handle).forEach(emission::onNext);
      }
    } catch (StoreException thrown) {
      // A stopped watch fails with `closed`; the stream has the real reason.
      if (!emission.isStopped()) {
        throw thrown;
      }
    } finally {
      store.running.remove(running);
      emission.ended();
      close(store, handle);
    }
  }

  private static void stop(long handle) {
    try {
      Native.stopWatch(handle, Scratch.ofThread());
    } catch (StoreClosedException closed) {
      // The watch has just ended by itself.
    }
  }

  private static List<Change> next(long handle) {
    var scratch = Scratch.ofThread();
    var out = scratch.take(16);
    Native.watchNext(handle, WAIT_MS, out, out.asSlice(8), scratch);
    long count = out.get(JAVA_LONG, 8);
    var all = MemorySegment.ofAddress(out.get(JAVA_LONG, 0)).reinterpret(count * EACH);
    var changes = new ArrayList<Change>((int) count);
    for (long i = 0; i < count; i++) {
      changes.add(change(all.asSlice(i * EACH, EACH)));
    }
    return changes;
  }

  private static Change change(MemorySegment change) {
    var operation = Change.Operation.values()[change.get(JAVA_INT, OPERATION) - 1];
    var name = bytes(change, TABLE, change.get(JAVA_INT, TABLE_LEN));
    var value =
        operation == Change.Operation.PUT
            ? Optional.of(bytes(change, VALUE, change.get(JAVA_LONG, VALUE_LEN)))
            : Optional.<byte[]>empty();
    return new Change(
        change.get(JAVA_LONG, 0),
        change.get(JAVA_LONG, 8),
        operation,
        new String(name, StandardCharsets.UTF_8),
        bytes(change, KEY, change.get(JAVA_INT, KEY_LEN)),
        value,
        Entries.moment(change.get(JAVA_LONG, EXPIRES)));
  }

  private static byte[] bytes(MemorySegment change, long at, long len) {
    return Rows.bytes(change.get(JAVA_LONG, at), len);
  }
}
