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
 * An ordered store: named tables of keys and values. It is shared by all threads, and by any number
 * of processes at once.
 *
 * <pre>{@code
 * try (var store = Store.open(Path.of("users"))) {
 *   var users = store.table("users");
 *   users.put(key, value).blockingAwait();
 *   users.scan(Scan.of(Range.prefix(prefix)).backward()).subscribe(row -> use(row.key()));
 * }
 * }</pre>
 */
public interface Store extends AutoCloseable {

  /** Opens the store in a folder, which is made if it is not there, as durable as can be. */
  static LocalStore open(Path folder) {
    return open(folder, StoreOptions.defaults());
  }

  /**
   * Opens the store in a folder. A process opens a folder once: a second time fails with the code
   * {@code already-open}.
   */
  static LocalStore open(Path folder, StoreOptions options) {
    return LocalStores.open(folder, options);
  }

  /** Connects to a store at {@code grpc://host:port}, without TLS and token. */
  static Store connect(String address) {
    return connect(address, ConnectOptions.defaults());
  }

  /**
   * Connects to a store at {@code grpc://host:port}, or {@code grpcs://host:port} with TLS. Without
   * a port it is 7380. The connection is made when it is needed, and made again when it is lost.
   * The library {@code nuthatch-rx-grpc} does this, and must be there.
   */
  static Store connect(String address, ConnectOptions options) {
    return Connector.find().connect(address, options);
  }

  /**
   * A table, plain if it has to be made: that is done by the first call on it that is subscribed
   * to. This alone does nothing and answers at once.
   */
  Table table(String name);

  /**
   * A table of this kind. It is made if it is not there by the first call on it that is subscribed
   * to, which fails with the code {@code table} where it is of the other kind.
   */
  Table table(String name, Kind kind);

  /** The main table, which every store has. The names of the others are keys in it. */
  Table mainTable();

  /** The names of all tables in order, without the main one. */
  Single<List<String>> tableNames();

  /**
   * Writes a batch, as a whole or not at all; the answer comes when it is as durable as the store's
   * options say. Fails with {@link ConditionUnmetException} where a condition in it does not hold.
   */
  Single<Written> write(Batch batch);

  /**
   * Writes a batch for each item of a stream. Each item is acknowledged after the commit that made
   * it durable, in the order of the items; many share a commit. No more items are asked for than
   * {@link BatchPolicy#inFlight} allows, or than the subscriber takes acknowledgements.
   *
   * <p>A batch that fails is told by its acknowledgement, and the stream goes on. It ends with an
   * error where {@code items} or {@code batchOf} fails, or the store does altogether.
   *
   * @param batchOf what is written for an item
   */
  <T> Flowable<Ack<T>> writeEach(
      Publisher<T> items, Function<? super T, Batch> batchOf, BatchPolicy policy);

  /**
   * Reads from one state of the store, whatever is written meanwhile. The state is taken when the
   * result is subscribed to, and let go of when what {@code reads} answers ends or is cancelled;
   * the {@link Snapshot} fails from then on.
   */
  <T> Flowable<T> snapshot(Function<? super Snapshot, ? extends Publisher<? extends T>> reads);

  /**
   * Committed changes, in order. The store must keep changes: {@link StoreOptions#keepChanges}. It
   * has no end but an error: a subscriber that is slower than changes are let go of is told by
   * {@link FellBehindException}, and keeps nobody waiting.
   */
  Flowable<Change> watch(Watch watch);

  /** What the store tells of itself and its tables. */
  Single<StoreStat> stat();

  /**
   * Copies the store, in the state of one moment and while others write, into a folder of this
   * machine that has no store yet. The copy appears when it is whole.
   *
   * @param compact leave free pages out, which takes longer
   */
  Completable backup(Path folder, boolean compact);

  /**
   * Closes the store. Streams that run fail with {@link StoreClosedException}, and so does
   * everything that is subscribed to later. Writes that were accepted are written. Closing twice
   * does nothing.
   */
  @Override
  void close();
}
