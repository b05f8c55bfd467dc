package io.nuthatch.rx.local;

import io.nuthatch.rx.Parallel;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.Scan;
import io.nuthatch.rx.StoreException;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.util.Arrays;
import java.util.List;

/**
 * Scans by several threads: parts of the range, all of one state. Rows cross from thread to thread
 * by the chunk, and a few chunks of each thread wait at most.
 */
final class ParallelScans {

  /** Chunks of a part that may wait. */
  private static final int CHUNKS_AHEAD = 4;

  private ParallelScans() {}

  static <T> Flowable<T> of(
      OpenTable table, Scan scan, Parallel parallel, RowMapper<? extends T> mapper) {
    if (scan.limit() < Long.MAX_VALUE) {
      var text = "limit: expected no limit in a parallel scan, found " + scan.limit();
      return Flowable.error(StoreException.of("options", text));
    }
    return Flowable.using(
        () -> table.openParts(scan, parallel),
        parts -> chunks(table.store, parts, parallel, mapper).concatMapIterable(list -> list, 2),
        parts -> Arrays.asList(parts).forEach(NativeScan::close));
  }

  private static <T> Flowable<List<T>> chunks(
      OpenStore store, NativeScan[] parts, Parallel parallel, RowMapper<? extends T> mapper) {
    var all = Flowable.fromArray(parts);
    int threads = parallel.threads();
    if (parallel.isOrdered()) {
      return all.concatMapEager(
          part -> ParallelScans.<T>chunks(store, part, mapper).subscribeOn(Schedulers.io()),
          threads,
          CHUNKS_AHEAD);
    }
    return all.flatMap(
        part -> ParallelScans.<T>chunks(store, part, mapper).subscribeOn(Schedulers.io()),
        false,
        threads,
        CHUNKS_AHEAD);
  }

  /** What the mapper makes of a part, by the chunk. */
  private static <T> Flowable<List<T>> chunks(
      OpenStore store, NativeScan part, RowMapper<? extends T> mapper) {
    return Flowable.generate(
        () -> {
          var reader = new ChunkReader<T>(part, mapper);
          Running running = failure -> part.close();
          store.running.add(running);
          return new Part<>(reader, running);
        },
        (reading, emitter) -> {
          boolean isMore;
          try {
            isMore = reading.reader.read();
          } catch (Error error) {
            throw error;
          } catch (Throwable thrown) {
            emitter.onError(thrown);
            return;
          }
          if (isMore) {
            emitter.onNext(reading.reader.take());
          } else if (store.isClosed()) {
            emitter.onError(Failures.closed());
          } else {
            emitter.onComplete();
          }
        },
        reading -> {
          store.running.remove(reading.running);
          reading.reader.close();
        });
  }

  private record Part<T>(ChunkReader<T> reader, Running running) {}
}
