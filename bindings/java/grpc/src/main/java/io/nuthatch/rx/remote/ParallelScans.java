package io.nuthatch.rx.remote;

import io.nuthatch.rx.Parallel;
import io.nuthatch.rx.Range;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.Scan;
import io.nuthatch.rx.StoreException;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * Scans by several threads, all on one state: one call delivers the messages, since another call
 * would see another state, and several threads decode them. Ranges of the caller are read
 * concurrently in one transaction.
 */
final class ParallelScans {

  private ParallelScans() {}

  static <T> Flowable<T> of(
      RemoteTable table, Scan scan, Parallel parallel, RowMapper<? extends T> mapper) {
    if (scan.limit() < Long.MAX_VALUE) {
      var text = "limit: expected no limit in a parallel scan, found " + scan.limit();
      return Flowable.error(StoreException.of("options", text));
    }
    if (parallel.ranges().isEmpty()) {
      var messages = table.opened(table.messages(scan, ParallelScans::whole));
      return mapped(messages, parallel, mapper);
    }
    return table.opened(
        table.store.read(
            transaction -> {
              var one = (RemoteReadTransaction) transaction;
              return parts(
                  parallel,
                  range -> {
                    var messages = one.pages(table, scan.within(range), ParallelScans::whole);
                    return ParallelScans.<T>mapped(messages, parallel, mapper);
                  });
            }));
  }

  @FunctionalInterface
  private interface Part<T> {
    Flowable<T> of(Range range);
  }

  private static <T> Flowable<T> parts(Parallel parallel, Part<T> part) {
    var ranges = Flowable.fromIterable(parallel.ranges());
    return parallel.isOrdered()
        ? ranges.concatMapEager(part::of, parallel.threads(), Flowable.bufferSize())
        : ranges.flatMap(part::of, false, parallel.threads());
  }

  /** Returns a message as one item. */
  private static Plan.Chunk<Rows> whole(Rows rows) {
    Iterator<Rows> one = List.of(rows).iterator();
    return () -> one.hasNext() ? one.next() : null;
  }

  private static <T> Flowable<T> mapped(
      Flowable<Rows> messages, Parallel parallel, RowMapper<? extends T> mapper) {
    int threads = parallel.threads();
    var lists =
        parallel.isOrdered()
            ? messages.concatMapEager(
                rows -> ParallelScans.<T>map(rows, mapper), threads, 1)
            : messages.flatMap(
                rows -> ParallelScans.<T>map(rows, mapper), false, threads, 1);
    return lists.concatMapIterable(list -> list, 2);
  }

  /** Maps a message on another thread. */
  private static <T> Flowable<List<T>> map(Rows rows, RowMapper<? extends T> mapper) {
    return Flowable.<List<T>>defer(
            () -> {
              var made = new ArrayList<T>();
              try {
                Plan.Chunk<T> chunk = rows.read(mapper);
                for (T each = chunk.next(); each != null; each = chunk.next()) {
                  made.add(each);
                }
              } catch (Throwable thrown) {
                // An `Error`, too: otherwise it would end only the task, and not the stream.
                return Flowable.error(thrown);
              }
              return Flowable.just(made);
            })
        .subscribeOn(Schedulers.io());
  }
}
