package io.nuthatch.rx;

import io.nuthatch.rx.local.LocalStores;
import io.nuthatch.rx.spi.Connector;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.functions.Function;
import java.nio.file.Path;
import java.util.List;
import org.reactivestreams.Publisher;

/**
 * An ordered store: named tables of keys and values. All threads of a process can share it. Any
 * number of processes can use the same folder at once.
 *
 * <pre>{@code
 * try (var store = Store.open(Path.of("users"))) {
 *   var users = store.table("users");
 *   users.put(key, value).blockingAwait();
 *   users.scan(Scan.of(Range.prefix(prefix)).reverse()).subscribe(row -> use(row.key()));
 * }
 * }</pre>
 *
 * <p>Calls that return a stream do nothing before the stream is subscribed to. They fail with a
 * {@link StoreException}.
 */
public interface Store extends AutoCloseable {

  /**
   * Opens the store in a folder with the default options. Creates the store if it does not exist.
   * Commits are durable ({@link Durability#SYNC}).
   *
   * @param folder the folder
   * @return the store
   * @throws StoreException if the store cannot be opened
   */
  static LocalStore open(Path folder) {
    return open(folder, StoreOptions.defaults());
  }

  /**
   * Opens the store in a folder. Waits for the disk.
   *
   * @param folder the folder
   * @param options the options
   * @return the store
   * @throws StoreException with the code {@code already-open} if this process has the folder open,
   *     and with other codes of {@code testdata/store/errors.csv} if the store cannot be opened
   */
  static LocalStore open(Path folder, StoreOptions options) {
    return LocalStores.open(folder, options);
  }

  /**
   * Connects to a store at {@code grpc://host:port} without TLS and without a token.
   *
   * @param address {@code grpc://host:port}
   * @return the store
   * @throws StoreException if the address is not valid
   */
  static Store connect(String address) {
    return connect(address, ConnectOptions.defaults());
  }

  /**
   * Connects to a store at {@code grpc://host:port}, or {@code grpcs://host:port} with TLS. The
   * default port is 7380. Requires the library {@code nuthatch-rx-grpc}.
   *
   * <p>Returns without connecting: the first call connects, and later calls reconnect after a lost
   * connection.
   *
   * @param address {@code grpc://host:port}, or {@code grpcs://host:port} for TLS; the default port
   *     is 7380
   * @param options the options
   * @return the store
   * @throws StoreException if the address, the options or the files that they name are not valid,
   *     or if the library is missing (code {@code options})
   */
  static Store connect(String address, ConnectOptions options) {
    return Connector.find().connect(address, options);
  }

  /**
   * Returns a table. Does nothing else: the first call on the table that is subscribed to creates
   * it, as a plain table, if it does not exist.
   *
   * @param name the name of the table
   * @return the table
   */
  Table table(String name);

  /**
   * Returns a table of a kind. Does nothing else: the first call on the table that is subscribed to
   * creates it if it does not exist, and fails with the code {@code table} if it has the other
   * kind.
   *
   * @param name the name of the table
   * @param kind the kind
   * @return the table
   */
  Table table(String name, Kind kind);

  /**
   * Returns the main table, which every LMDB environment has. The names of the other tables are
   * keys in it.
   *
   * @return the table
   */
  Table mainTable();

  /**
   * Returns the names of all tables, in order, without the main table.
   *
   * @return the names of all tables in order, without the main table
   */
  Single<List<String>> tableNames();

  /**
   * Commits a batch: all of its writes, or none. Succeeds after the commit, with the durability of
   * the store's options. Fails with {@link ConditionUnmetException} if a condition of the batch is
   * not met.
   *
   * @param batch the batch
   * @return where the batch was written, when it is as durable as the options of the store demand
   */
  Single<Written> write(Batch batch);

  /**
   * Writes a batch for each item of a stream. Emits an acknowledgement for each item after its
   * commit, in the order of the items. Many batches share a commit. Requests at most {@link
   * BatchPolicy#inFlight} unacknowledged items from {@code items}, and no more than the subscriber
   * has requested acknowledgements.
   *
   * <p>If a batch fails, its acknowledgement has the failure, and the stream continues. The stream
   * fails if {@code items} or {@code batchOf} fails, or if the store is closed or cannot write at
   * all.
   *
   * @param <T> the type of the items
   * @param items the items
   * @param batchOf returns the batch to write for an item
   * @param policy how items are grouped
   * @return the acknowledgements
   */
  <T> Flowable<Ack<T>> writeEach(
      Publisher<T> items, Function<? super T, Batch> batchOf, BatchPolicy policy);

  /**
   * Reads from one state of the store, which later writes do not change. A subscription begins a
   * read transaction. The transaction ends when the stream that {@code reads} returns ends or is
   * cancelled. After that, calls on the {@link ReadTransaction} fail.
   *
   * @param <T> the type of the items
   * @param reads returns the stream to emit, from reads of the read transaction
   * @return the items of that stream
   */
  <T> Flowable<T> read(Function<? super ReadTransaction, ? extends Publisher<? extends T>> reads);

  /**
   * Watches committed changes, in order. The store must keep changes: {@link
   * LocalStore#keepChanges}. The stream ends only with an error. A subscriber does not slow writers
   * down: if the store drops changes before the subscriber has requested them, the stream fails
   * with {@link FellBehindException}.
   *
   * @param watch the changes to watch
   * @return the changes
   */
  Flowable<Change> watch(Watch watch);

  /**
   * Returns statistics of the store and of its tables.
   *
   * @return the statistics
   */
  Single<StoreStat> stat();

  /**
   * Copies one state of the store to a folder of this machine, while others write. The folder must
   * not contain a store. The copy becomes visible when it is complete.
   *
   * @param folder the folder of the copy
   * @param compact whether to omit free pages, which takes longer
   * @return completes when the copy is complete
   */
  Completable backup(Path folder, boolean compact);

  /**
   * Closes the store. Commits accepted writes first. Streams in progress and later subscriptions
   * fail with {@link StoreClosedException}. A second call does nothing.
   */
  @Override
  void close();
}
