package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Batch;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.StoreOptions;
import io.nuthatch.rx.Written;
import io.nuthatch.rx.flow.Signals;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.core.SingleEmitter;
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
  /** Why no acknowledgements come any more. */
  private volatile StoreException failed;
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
      checkAcks(tag);
    } catch (StoreException thrown) {
      // Where the store was closed meanwhile it has been told already.
      if (waiting.remove(tag) != null) {
        throw thrown;
      }
    }
  }

  /** Fails a write that came after the thread of acknowledgements had failed. */
  private void checkAcks(long tag) {
    var why = failed;
    var emitter = why == null ? null : waiting.remove(tag);
    if (emitter != null) {
      Signals.error(emitter, why);
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

  /**
   * Delivers acknowledgements until the writer is closed. Nothing that a subscriber throws ends
   * this: see {@link Signals}. Where this thread itself fails, for want of memory, all that wait
   * are failed with that, and so are later writes.
   */
  private void takeAcks(long from) {
    StoreException end = Failures.closed();
    try (var arena = Arena.ofConfined()) {
      long each = Layouts.ACK.byteSize();
      var acks = arena.allocate(each * ACKS_AT_ONCE, 8);
      var count = arena.allocate(8, 8);
      while (true) {
        Native.takeAcks(from, WAIT_MS, acks, ACKS_AT_ONCE, count, Scratch.mine());
        long many = count.get(JAVA_LONG, 0);
        for (long i = 0; i < many; i++) {
          answer(acks.asSlice(i * each, each));
        }
      }
    } catch (StoreException closed) {
      // All have been taken, and no more will come.
      Native.closeWriter(from, Scratch.mine());
    } catch (Throwable thrown) {
      end = StoreException.of("internal", "the thread of acknowledgements failed: " + thrown);
      failed = end;
      Signals.report(thrown);
    }
    for (long tag : waiting.keySet()) {
      var emitter = waiting.remove(tag);
      if (emitter != null) {
        Signals.error(emitter, end);
      }
    }
  }

  private void answer(MemorySegment ack) {
    var emitter = waiting.remove(ack.get(JAVA_LONG, 0));
    if (emitter == null) {
      return;
    }
    var error = ack.asSlice(Layouts.at(Layouts.ACK, "error"), Layouts.ERROR.byteSize());
    if (error.get(JAVA_INT, 0) != 0) {
      Signals.error(emitter, Failures.of(error));
    } else {
      var written =
          new Written(ack.get(JAVA_LONG, 8), ack.get(JAVA_LONG, 16), ack.get(JAVA_LONG, 24));
      Signals.success(emitter, written);
    }
  }
}
