package io.nuthatch.rx.flow;

import io.nuthatch.rx.Ack;
import io.nuthatch.rx.Batch;
import io.nuthatch.rx.BatchPolicy;
import io.nuthatch.rx.StoreClosedException;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.StoreUnavailableException;
import io.nuthatch.rx.Written;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.exceptions.CompositeException;
import io.reactivex.rxjava3.functions.Function;
import java.util.List;
import org.reactivestreams.Publisher;

/** Writes a batch for each item of a stream, and acknowledges the items in order. */
public final class AckedWrites {

  private AckedWrites() {}

  /**
   * Writes a batch for each item.
   *
   * @param writer submits a batch when its result is subscribed to, and keeps the order of the
   *     subscriptions
   */
  public static <T> Flowable<Ack<T>> of(
      Publisher<T> items,
      Function<? super T, Batch> batchOf,
      BatchPolicy policy,
      Function<? super Batch, Single<Written>> writer) {
    return acked(items, batchOf, policy, writer)
        .onErrorResumeNext(thrown -> Flowable.error(first(thrown)));
  }

  /**
   * Returns the first failure. A lost connection fails all waiting batches at once, and RxJava may
   * combine their failures.
   */
  private static Throwable first(Throwable thrown) {
    return thrown instanceof CompositeException all ? all.getExceptions().getFirst() : thrown;
  }

  private static <T> Flowable<Ack<T>> acked(
      Publisher<T> items,
      Function<? super T, Batch> batchOf,
      BatchPolicy policy,
      Function<? super Batch, Single<Written>> writer) {
    if (policy.groupItems() == 1) {
      return Flowable.fromPublisher(items)
          .concatMapEagerDelayError(
              item -> Signals.caught(() -> one(item, batchOf.apply(item), writer).toFlowable()),
              false,
              policy.inFlight(),
              1);
    }
    int groups = Math.max(1, policy.inFlight() / policy.groupItems());
    return new Groups<>(items, policy)
        .concatMapEagerDelayError(
            group -> Signals.caught(() -> many(group, batchOf, writer)),
            false,
            groups,
            policy.groupItems());
  }

  private static <T> Single<Ack<T>> one(
      T item, Batch batch, Function<? super Batch, Single<Written>> writer) throws Throwable {
    return writer
        .apply(batch)
        .map(written -> Ack.written(item, written))
        .onErrorResumeNext(thrown -> failed(thrown).map(known -> Ack.failed(item, known)));
  }

  /** Commits a group together: all of its items have the same outcome. */
  private static <T> Flowable<Ack<T>> many(
      List<T> group,
      Function<? super T, Batch> batchOf,
      Function<? super Batch, Single<Written>> writer)
      throws Throwable {
    var all = new Batch();
    for (T item : group) {
      all.add(batchOf.apply(item));
    }
    return one(group, all, writer)
        .flattenAsFlowable(
            ack -> group.stream().map(i -> new Ack<>(i, ack.outcome(), ack.failure())).toList());
  }

  /**
   * Returns the failure for the acknowledgement of a batch. A failure of the store or of the
   * connection ends the stream instead, after the earlier acknowledgements.
   */
  private static Single<StoreException> failed(Throwable thrown) {
    return switch (thrown) {
      case StoreClosedException closed -> Single.error(closed);
      case StoreUnavailableException unavailable -> Single.error(unavailable);
      case StoreException known -> Single.just(known);
      default -> Single.error(thrown);
    };
  }
}
