package io.nuthatch.rx;

import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.reactivestreams.Publisher;

/**
 * A table of a store: ordered keys of 1 to 511 bytes, each with a value. Keys are compared byte by
 * byte, as unsigned numbers.
 *
 * <p>Streams of a local store read on the thread that requests rows, like {@link Flowable#range};
 * {@link Flowable#subscribeOn} selects another thread. Streams of a remote store emit on threads of
 * the client.
 *
 * <p>No call does anything before its result is subscribed to.
 */
public interface Table {

  /**
   * Returns the name; empty for the main table.
   *
   * @return the name; empty for the main table
   */
  String name();

  /**
   * Returns the value of a key; empty if the key is missing.
   *
   * @param key the key
   * @return the value; empty if the key does not exist
   */
  Maybe<byte[]> get(byte[] key);

  /**
   * Returns the value of a key with its version and time of expiry; empty if the key is missing.
   *
   * @param key the key
   * @return the entry; empty if the key does not exist
   */
  Maybe<Entry> entry(byte[] key);

  /**
   * Returns the values of many keys, in the order of the keys, all from one state of the store.
   *
   * @param keys the keys
   * @return the values, in the order of the keys
   */
  Single<List<Optional<byte[]>>> getMany(List<byte[]> keys);

  /**
   * Looks up each key of a stream, and emits the rows in the order of the keys, without missing
   * ones. Each lookup sees the newest state.
   *
   * @param keys the keys
   * @return the rows
   */
  Flowable<Row> getEach(Publisher<byte[]> keys);

  /**
   * Returns all rows, in ascending key order.
   *
   * @return the rows
   */
  default Flowable<Row> scan() {
    return scan(Scan.all());
  }

  /**
   * Returns all rows of a range, in ascending key order.
   *
   * @param range the keys
   * @return the rows
   */
  default Flowable<Row> scan(Range range) {
    return scan(Scan.of(range));
  }

  /**
   * Returns the rows of a scan, all from the state of the store at the time of the subscription.
   *
   * @param scan the scan
   * @return the rows
   */
  Flowable<Row> scan(Scan scan);

  /**
   * Returns the results of a mapper for the rows of a scan. The mapper reads each row in place, so
   * only what it copies is copied. Results that are {@code null} are not emitted.
   *
   * @param <T> the type of the results
   * @param scan the scan
   * @param mapper converts each row
   * @return the results
   */
  <T> Flowable<T> scan(Scan scan, RowMapper<? extends T> mapper);

  /**
   * Returns the rows of a scan, read by several threads, all from one state of the store. A scan
   * with a limit fails with the code {@code options}.
   *
   * @param scan the scan, without a limit
   * @param parallel how the scan is divided
   * @return the rows
   */
  default Flowable<Row> scanParallel(Scan scan, Parallel parallel) {
    return scanParallel(scan, parallel, RowMapper.COPY);
  }

  /**
   * Returns the results of a mapper for the rows of a scan, read by several threads, all from one
   * state of the store. These threads call the mapper concurrently. A scan with a limit fails with
   * the code {@code options}.
   *
   * @param <T> the type of the results
   * @param scan the scan, without a limit
   * @param parallel how the scan is divided
   * @param mapper converts each row
   * @return the results
   */
  <T> Flowable<T> scanParallel(Scan scan, Parallel parallel, RowMapper<? extends T> mapper);

  /**
   * Reads with a cursor, on a thread of {@code Schedulers.io()}, from one state of the store. The
   * stream completes when {@code reader} returns, and fails if {@code reader} throws.
   *
   * @param <T> the type of the items
   * @param reader moves the cursor and emits items
   * @return the items
   */
  <T> Flowable<T> cursor(CursorReader<T> reader);

  /**
   * Returns the number of keys in a range.
   *
   * @param range the keys
   * @return the number of keys
   */
  Single<Long> count(Range range);

  /**
   * Returns the number of keys in the table.
   *
   * @return the number of keys
   */
  default Single<Long> count() {
    return count(Range.all());
  }

  /**
   * Writes a value, and replaces an existing one. Completes after the commit.
   *
   * @param key the key
   * @param value the value
   * @return completes when the write is as durable as the options of the store demand
   */
  Completable put(byte[] key, byte[] value);

  /**
   * Writes a value that expires at a time. The table must be stamped, otherwise the call fails with
   * the code {@code table}.
   *
   * @param key the key
   * @param value the value
   * @param expiresAt the time of expiry
   * @return completes when the write is as durable as the options of the store demand
   */
  Completable put(byte[] key, byte[] value, Instant expiresAt);

  /**
   * Writes a value if its key meets a condition. Returns whether it does.
   *
   * @param key the key
   * @param value the value
   * @param condition the condition
   * @return whether the condition was met
   */
  Single<Boolean> putIf(byte[] key, byte[] value, Condition condition);

  /**
   * Deletes a key. A missing key is not an error.
   *
   * @param key the key
   * @return completes when the deletion is as durable as the options of the store demand
   */
  Completable delete(byte[] key);

  /**
   * Deletes a key. Returns whether it existed.
   *
   * @param key the key
   * @return whether the key existed
   */
  Single<Boolean> remove(byte[] key);

  /**
   * Deletes all keys of a range in one transaction. Returns their number.
   *
   * @param range the keys
   * @return the number of deleted keys
   */
  Single<Long> deleteRange(Range range);

  /**
   * Writes the rows of a stream, and acknowledges each: see {@link Store#writeEach}.
   *
   * @param rows the rows
   * @param policy how rows are grouped
   * @return the acknowledgements
   */
  Flowable<Ack<Row>> batch(Publisher<Row> rows, BatchPolicy policy);

  /**
   * Writes the rows of a stream with the default policy, and acknowledges each.
   *
   * @param rows the rows
   * @return the acknowledgements
   */
  default Flowable<Ack<Row>> put(Publisher<Row> rows) {
    return batch(rows, BatchPolicy.defaults());
  }

  /**
   * Deletes the keys of a stream, and acknowledges each: see {@link Store#writeEach}.
   *
   * @param keys the keys
   * @param policy how keys are grouped
   * @return the acknowledgements
   */
  Flowable<Ack<byte[]>> delete(Publisher<byte[]> keys, BatchPolicy policy);

  /**
   * Deletes the keys of a stream with the default policy, and acknowledges each.
   *
   * @param keys the keys
   * @return the acknowledgements
   */
  default Flowable<Ack<byte[]>> delete(Publisher<byte[]> keys) {
    return delete(keys, BatchPolicy.defaults());
  }

  /**
   * Watches the committed changes of this table within a range, from now on: see {@link
   * Store#watch}.
   *
   * @param range the keys to watch
   * @return the changes
   */
  Flowable<Change> watch(Range range);
}
