package io.nuthatch.rx.local;

import io.nuthatch.rx.RowMapper;
import io.reactivex.rxjava3.core.Flowable;
import java.util.function.Supplier;
import org.reactivestreams.Subscriber;

/** The rows of a scan. Each subscription opens its own scan. */
final class ScanFlowable<T> extends Flowable<T> {

  private final OpenStore store;
  private final Supplier<NativeScan> scans;
  private final RowMapper<? extends T> mapper;

  ScanFlowable(OpenStore store, Supplier<NativeScan> scans, RowMapper<? extends T> mapper) {
    this.store = store;
    this.scans = scans;
    this.mapper = mapper;
  }

  @Override
  protected void subscribeActual(Subscriber<? super T> subscriber) {
    var reader = new ChunkReader<T>(scans.get(), mapper, ChunkReader.CACHED_ROWS);
    var subscription = new ScanSubscription<>(subscriber, store, reader);
    // Registered first: if the store is closed from here on, the stream fails.
    store.running.add(subscription);
    subscriber.onSubscribe(subscription);
    if (store.isClosed()) {
      subscription.fail(Failures.closed());
    }
  }
}
