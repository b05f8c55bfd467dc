package io.nuthatch.rx;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import java.util.List;
import java.util.Optional;

/**
 * One state of a store, during {@link Store#read}. While it exists, pages that writers replace
 * cannot be reused, so the file grows: use it briefly. After its end, all calls fail with {@link
 * StoreClosedException}.
 */
public interface ReadTransaction {

  /**
   * Returns the value of a key; empty if the key is missing.
   *
   * @param table the table
   * @param key the key
   * @return the value; empty if the key does not exist
   */
  Maybe<byte[]> get(Table table, byte[] key);

  /**
   * Returns the value of a key with its version and time of expiry; empty if the key is missing.
   *
   * @param table the table
   * @param key the key
   * @return the entry; empty if the key does not exist
   */
  Maybe<Entry> entry(Table table, byte[] key);

  /**
   * Returns the values of many keys, in the order of the keys.
   *
   * @param table the table
   * @param keys the keys
   * @return the values, in the order of the keys
   */
  Single<List<Optional<byte[]>>> getMany(Table table, List<byte[]> keys);

  /**
   * Returns the rows of a scan.
   *
   * @param table the table
   * @param scan the scan
   * @return the rows
   */
  Flowable<Row> scan(Table table, Scan scan);
}
