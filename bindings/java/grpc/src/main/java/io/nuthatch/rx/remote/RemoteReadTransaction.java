package io.nuthatch.rx.remote;

import com.google.protobuf.ByteString;
import io.nuthatch.rx.Entry;
import io.nuthatch.rx.Row;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.Scan;
import io.nuthatch.rx.ReadTransaction;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.Table;
import io.nuthatch.store.v1.StoreProto.GetRequest;
import io.nuthatch.store.v1.StoreProto.TxnRequest;
import io.nuthatch.store.v1.StoreProto.TxnResponse;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.util.List;
import java.util.Optional;

/**
 * A read transaction of a remote store. The responses of all its reads arrive in one call. Other
 * threads deliver them, so a subscriber may wait for another read.
 */
final class RemoteReadTransaction implements ReadTransaction, AutoCloseable {

  /** A cheap read, with which the server begins the transaction. */
  private static final TxnRequest FIRST =
      TxnRequest.newBuilder()
          .setGet(GetRequest.newBuilder().setKey(ByteString.copyFrom(new byte[1])))
          .build();

  private final RemoteStore store;
  private Txn txn;
  private boolean isClosed;

  RemoteReadTransaction(RemoteStore store) {
    this.store = store;
  }

  /** Begins the transaction; retried while the server cannot be reached. */
  Single<ReadTransaction> begin() {
    var taken = Single.defer(() -> open().ask(FIRST));
    return store
        .tables
        .openNamed()
        .andThen(store.calls.whilePassing(taken))
        .observeOn(Schedulers.io())
        .map(answer -> this);
  }

  private synchronized Txn open() {
    if (isClosed) {
      throw StoreException.of("closed", "the read transaction has ended");
    }
    txn = Txn.begin(store.calls);
    return txn;
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    if (txn != null) {
      txn.close();
    }
  }

  private Single<TxnResponse> ask(Table table, TxnRequest.Builder request) {
    return store.tables.open(store.remoteTable(table)).andThen(txn().ask(request.build()));
  }

  private synchronized Txn txn() {
    return txn;
  }

  @Override
  public Maybe<byte[]> get(Table table, byte[] key) {
    return lookUp(table, key).mapOptional(answer -> RemoteTable.value(answer.getGet()));
  }

  @Override
  public Maybe<Entry> entry(Table table, byte[] key) {
    return lookUp(table, key).mapOptional(answer -> RemoteTable.entry(answer.getGet()));
  }

  private Single<TxnResponse> lookUp(Table table, byte[] key) {
    return Single.defer(
            () -> {
              var request = store.remoteTable(table).getRequest(key);
              return ask(table, TxnRequest.newBuilder().setGet(request));
            })
        .observeOn(Schedulers.io());
  }

  @Override
  public Single<List<Optional<byte[]>>> getMany(Table table, List<byte[]> keys) {
    return Single.defer(
            () -> {
              var request = store.remoteTable(table).getManyRequest(keys);
              return ask(table, TxnRequest.newBuilder().setGetMany(request));
            })
        .observeOn(Schedulers.io())
        .map(answer -> RemoteTable.values(answer.getGetMany()));
  }

  @Override
  public Flowable<Row> scan(Table table, Scan scan) {
    return pages(table, scan, rows -> rows.read(RowMapper.COPY));
  }

  /** Returns the items that {@code reading} creates from the pages of a scan. */
  <T> Flowable<T> pages(Table table, Scan scan, ScanPlan.Reading<T> reading) {
    return new StreamFlowable<>(
        store.calls,
        () ->
            new Plan<Rows, T>() {
              @Override
              public Source<Rows> open() {
                return new PageSource(rest -> page(table, rest), scan);
              }

              @Override
              public Chunk<T> read(Rows rows) {
                return reading.read(rows);
              }

              @Override
              public boolean mayResume() {
                return false;
              }
            });
  }

  /** Returns the first rows of a scan, as many as fit in a message. */
  private Single<TxnResponse> page(Table table, Scan scan) {
    var name = store.remoteTable(table).name();
    return ask(table, TxnRequest.newBuilder().setScan(Convert.scan(name, scan)))
        .observeOn(Schedulers.io());
  }

  /** Returns the first rows of a scan, at most its limit. Waits for the server. */
  List<Row> rows(Table table, Scan scan) {
    return page(table, scan).blockingGet().getScan().getRowsList().stream()
        .map(row -> new Row(row.getKey().toByteArray(), row.getValue().toByteArray()))
        .toList();
  }
}
