package io.nuthatch.rx;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import java.util.List;
import java.util.Optional;

/**
 * One state of a store, which {@link Store#snapshot} hands out for a while. Like all transactions
 * that read, it keeps room in the file from being used again: use it soon. All calls are refused
 * with {@link StoreClosedException} when it has ended.
 */
public interface Snapshot {

  /** The value of a key; empty when the key is missing. */
  Maybe<byte[]> get(Table table, byte[] key);

  /** The value of a key with its version and the time it expires; empty when it is missing. */
  Maybe<Entry> entry(Table table, byte[] key);

  /** The values of many keys, in the order of the keys. */
  Single<List<Optional<byte[]>>> getMany(Table table, List<byte[]> keys);

  /** The rows of a scan. */
  Flowable<Row> scan(Table table, Scan scan);
}
