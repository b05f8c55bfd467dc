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
 * byte, without signs.
 *
 * <p>Streams of a local store read on the thread that asks for rows, as {@link Flowable#range}
 * does: {@link Flowable#subscribeOn} moves them elsewhere. Those of a remote store come on its
 * threads.
 */
public interface Table {

  /** The name; empty for the main table. */
  String name();

  /** The value of a key; empty when the key is missing. */
  Maybe<byte[]> get(byte[] key);

  /** The value of a key with its version and the time it expires; empty when it is missing. */
  Maybe<Entry> entry(byte[] key);

  /** The values of many keys, in the order of the keys, all from one state of the store. */
  Single<List<Optional<byte[]>>> getMany(List<byte[]> keys);

  /**
   * The rows of keys as they come, in their order; keys that are missing are left out. Each key
   * is looked up in the state of that moment.
   */
  Flowable<Row> getEach(Publisher<byte[]> keys);

  /** All rows, from the least key on. */
  default Flowable<Row> scan() {
    return scan(Scan.all());
  }

  /** All rows of a range, from the least key on. */
  default Flowable<Row> scan(Range range) {
    return scan(Scan.of(range));
  }

  /** The rows of a scan, all from the state of the store at the time of the subscription. */
  Flowable<Row> scan(Scan scan);

  /**
   * What a mapper makes of the rows of a scan. It sees each where it lies, so that only what is
   * needed is copied; rows of which it makes {@code null} are left out.
   */
  <T> Flowable<T> scan(Scan scan, RowMapper<? extends T> mapper);

  /** The rows of a scan, read by several threads at once, all from the same state of the store. */
  default Flowable<Row> scanParallel(Scan scan, Parallel parallel) {
    return scanParallel(scan, parallel, RowMapper.COPY);
  }

  /**
   * What a mapper makes of the rows of a scan, by several threads at once, all from the same state
   * of the store. The mapper is called by these threads. A scan with a limit is refused, with the
   * code {@code options}.
   */
  <T> Flowable<T> scanParallel(Scan scan, Parallel parallel, RowMapper<? extends T> mapper);

  /**
   * Reads with a cursor, on a thread of {@code Schedulers.io()}, from one state of the store. The
   * stream ends when {@code reader} returns, and fails when it throws.
   */
  <T> Flowable<T> cursor(CursorReader<T> reader);

  /** How many keys of a range are there. */
  Single<Long> count(Range range);

  /** How many keys are there. */
  default Single<Long> count() {
    return count(Range.all());
  }

  /** Writes a value under a key, in place of one that is there. */
  Completable put(byte[] key, byte[] value);

  /** Writes a value that expires at a time. The table must be stamped. */
  Completable put(byte[] key, byte[] value, Instant expiresAt);

  /** Writes a value if a condition holds of its key, and answers whether it did. */
  Single<Boolean> putIf(byte[] key, byte[] value, Condition condition);

  /** Deletes a key. One that is missing is no error. */
  Completable delete(byte[] key);

  /** Deletes a key, and answers whether it was there. */
  Single<Boolean> remove(byte[] key);

  /** Deletes all keys of a range in one transaction, and answers how many there were. */
  Single<Long> deleteRange(Range range);

  /** Writes the rows of a stream, each acknowledged by itself; see {@link Store#writeEach}. */
  Flowable<Ack<Row>> batch(Publisher<Row> rows, BatchPolicy policy);

  /** Writes the rows of a stream, each acknowledged by itself. */
  default Flowable<Ack<Row>> put(Publisher<Row> rows) {
    return batch(rows, BatchPolicy.defaults());
  }

  /** Deletes the keys of a stream, each acknowledged by itself. */
  Flowable<Ack<byte[]>> delete(Publisher<byte[]> keys, BatchPolicy policy);

  /** Deletes the keys of a stream, each acknowledged by itself. */
  default Flowable<Ack<byte[]>> delete(Publisher<byte[]> keys) {
    return delete(keys, BatchPolicy.defaults());
  }

  /** The committed changes of this table from now on; see {@link Store#watch}. */
  Flowable<Change> watch(Range range);
}
