package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Batch;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.StoreOptions;
import io.nuthatch.rx.Written;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.core.SingleEmitter;
import io.reactivex.rxjava3.plugins.RxJavaPlugins;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Writes of a store: submitted by any thread, acknowledged by one of this class's own, which begins
 * with the first write and ends with the store.
 */
final class Writer {

  private static final int ACKS_AT_ONCE = 256;
  private static final long WAIT_MS = 3_600_000;

  private final OpenStore store;
  private final StoreOptions options;
  private final AtomicLong tags = new AtomicLong();
  private final Map<Long, SingleEmitter<Written>> waiting = new ConcurrentHashMap<>();
  private volatile long handle;
  private boolean isFinished;

  Writer(OpenStore store, StoreOptions options) {
    this.store = store;
    this.options = options;
  }

  /** Submits a batch when that is subscribed to; waits there while the queue has no room. */
  Single<Written> write(Batch batch) {
    return Single.create(emitter -> {
      try {
        submit(batch, emitter);
      } catch (StoreException thrown) {
        // Whoever no longer waits is not told, as of a batch that fails later.
        emitter.tryOnError(thrown);
      }
    });
  }

  private void submit(Batch batch, SingleEmitter<Written> emitter) {
    long to = handle();
    for (var write : batch.writes()) {
      // Opened before the batch is put together: that is a call of its own.
      store.tableHandle(write.table());
    }
    var scratch = Scratch.mine();
    var writes = Writes.put(scratch, store, batch.writes());
    long tag = tags.incrementAndGet();
    waiting.put(tag, emitter);
    try {
      Native.submit(to, writes, batch.writes().size(), tag, scratch);
    } catch (StoreException thrown) {
      // Where the store was closed meanwhile it has been told already.
      if (waiting.remove(tag) != null) {
        throw thrown;
      }
    }
  }

  private long handle() {
    store.check();
    long known = handle;
    return known != 0 ? known : start();
  }

  private synchronized long start() {
    if (isFinished) {
      throw Failures.closed();
    }
    if (handle == 0) {
      var scratch = Scratch.mine();
      var struct = scratch.zeros(Layouts.WRITER_OPTIONS.byteSize());
      struct.set(JAVA_INT, 4, options.durability().ordinal());
      struct.set(JAVA_LONG, 16, options.queueBytes());
      var out = scratch.take(8);
      Native.openWriter(store.handle, struct, out, scratch);
      long opened = out.get(JAVA_LONG, 0);
      Thread.ofPlatform().daemon().name("nuthatch-acks").start(() -> takeAcks(opened));
      handle = opened;
    }
    return handle;
  }

  /** Takes no more batches, and returns when all that were submitted are written. */
  synchronized void finish() {
    isFinished = true;
    if (handle != 0) {
      Native.finishWriter(handle, Scratch.mine());
    }
  }

  private void takeAcks(long from) {
    long each = Layouts.ACK.byteSize();
    try (var arena = Arena.ofConfined()) {
      var acks = arena.allocate(each * ACKS_AT_ONCE, 8);
      var count = arena.allocate(8, 8);
      while (true) {
        Native.takeAcks(from, WAIT_MS, acks, ACKS_AT_ONCE, count, Scratch.mine());
        long many = count.get(JAVA_LONG, 0);
        for (long i = 0; i < many; i++) {
          try {
            answer(acks.asSlice(i * each, each));
          } catch (RuntimeException thrown) {
            // A subscriber's: others wait for their answers.
            RxJavaPlugins.onError(thrown);
          }
        }
      }
    } catch (StoreException closed) {
      // All have been taken, and no more will come.
      Native.closeWriter(from, Scratch.mine());
    }
    waiting.values().forEach(emitter -> emitter.tryOnError(Failures.closed()));
  }

  private void answer(MemorySegment ack) {
    var emitter = waiting.remove(ack.get(JAVA_LONG, 0));
    if (emitter == null) {
      return;
    }
    var error = ack.asSlice(Layouts.at(Layouts.ACK, "error"), Layouts.ERROR.byteSize());
    if (error.get(JAVA_INT, 0) != 0) {
      emitter.tryOnError(Failures.of(error));
    } else {
      emitter.onSuccess(
          new Written(
              ack.get(JAVA_LONG, 8), ack.get(JAVA_LONG, 16), ack.get(JAVA_LONG, 24)));
    }
  }
}
