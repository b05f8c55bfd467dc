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
 * The batch writer of a store. Any thread submits batches. One thread of this class delivers
 * acknowledgements: it starts with the first write and ends with the store.
 */
final class Writer {

  private static final int ACKS_AT_ONCE = 256;
  private static final long WAIT_MS = 3_600_000;

  private final OpenStore store;
  private final StoreOptions options;
  private final AtomicLong tags = new AtomicLong();
  private final Map<Long, SingleEmitter<Written>> waiting = new ConcurrentHashMap<>();
  private volatile long handle;
  /** Why no more acknowledgements arrive. */
  private volatile StoreException failed;
  private boolean isFinished;

  Writer(OpenStore store, StoreOptions options) {
    this.store = store;
    this.options = options;
  }

  /**
   * Submits a batch when the result is subscribed to. The subscribing thread waits while the queue
   * is full.
   */
  Single<Written> write(Batch batch) {
    return Single.create(emitter -> {
      try {
        submit(batch, emitter);
      } catch (StoreException thrown) {
        // A disposed subscriber receives no error, as for a batch that fails later.
        emitter.tryOnError(thrown);
      }
    });
  }

  private void submit(Batch batch, SingleEmitter<Written> emitter) {
    long to = handle();
    for (var write : batch.writes()) {
      // Tables are opened before the structs are written: opening is a call with its own memory.
      store.tableHandle(write.table());
    }
    var scratch = Scratch.ofThread();
    var writes = Writes.put(scratch, store, batch.writes());
    long tag = tags.incrementAndGet();
    waiting.put(tag, emitter);
    try {
      Native.submit(to, writes, batch.writes().size(), tag, scratch);
      checkAcks(tag);
    } catch (StoreException thrown) {
      // If the store was closed meanwhile, the subscriber has its error already.
      if (waiting.remove(tag) != null) {
        throw thrown;
      }
    }
  }

  /** Fails a write that was submitted after the thread of acknowledgements had failed. */
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
      var scratch = Scratch.ofThread();
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

  /** Accepts no more batches, and returns when all submitted ones are committed. */
  synchronized void finish() {
    isFinished = true;
    if (handle != 0) {
      Native.finishWriter(handle, Scratch.ofThread());
    }
  }

  /**
   * Delivers acknowledgements until the writer is closed. Exceptions of subscribers do not end this
   * thread: see {@link Signals}. If the thread itself fails, for example without memory, all
   * waiting and later writes fail with that error.
   */
  private void takeAcks(long from) {
    StoreException end = Failures.closed();
    try (var arena = Arena.ofConfined()) {
      long each = Layouts.ACK.byteSize();
      var acks = arena.allocate(each * ACKS_AT_ONCE, 8);
      var count = arena.allocate(8, 8);
      while (true) {
        Native.takeAcks(from, WAIT_MS, acks, ACKS_AT_ONCE, count, Scratch.ofThread());
        long many = count.get(JAVA_LONG, 0);
        for (long i = 0; i < many; i++) {
          answer(acks.asSlice(i * each, each));
        }
      }
    } catch (StoreException closed) {
      // All acknowledgements were delivered.
      Native.closeWriter(from, Scratch.ofThread());
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
