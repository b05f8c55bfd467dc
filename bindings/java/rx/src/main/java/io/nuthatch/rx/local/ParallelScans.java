package io.nuthatch.rx.local;

import io.nuthatch.rx.Parallel;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.Scan;
import io.nuthatch.rx.StoreException;
import io.reactivex.rxjava3.core.Flowable;
import org.reactivestreams.Subscriber;

/**
 * The rows of a scan that several threads read. Each subscription opens all parts of the scan, on
 * one state of the store.
 */
final class ParallelScans<T> extends Flowable<T> {

  private final OpenTable table;
  private final Scan scan;
  private final Parallel parallel;
  private final RowMapper<? extends T> mapper;

  private ParallelScans(
      OpenTable table, Scan scan, Parallel parallel, RowMapper<? extends T> mapper) {
    this.table = table;
    this.scan = scan;
    this.parallel = parallel;
    this.mapper = mapper;
  }

  static <T> Flowable<T> of(
      OpenTable table, Scan scan, Parallel parallel, RowMapper<? extends T> mapper) {
    if (scan.limit() < Long.MAX_VALUE) {
      var text = "limit: expected no limit in a parallel scan, found " + scan.limit();
      return Flowable.error(StoreException.of("options", text));
    }
    return new ParallelScans<>(table, scan, parallel, mapper);
  }

  @Override
  protected void subscribeActual(Subscriber<? super T> subscriber) {
    NativeScan[] parts;
    try {
      parts = table.openParts(scan, parallel);
    } catch (Throwable thrown) {
      Flowable.<T>error(thrown).subscribe(subscriber);
      return;
    }
    var store = table.store;
    var subscription =
        new ParallelSubscription<T>(
            subscriber, store, parts, parallel.threads(), parallel.isOrdered(), mapper);
    // Registered first: if the store is closed from here on, the stream fails.
    store.running.add(subscription);
    subscriber.onSubscribe(subscription);
    if (store.isClosed()) {
      subscription.fail(Failures.closed());
    }
  }
}
