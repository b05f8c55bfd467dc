package io.nuthatch.rx.remote;

import io.grpc.ManagedChannel;
import io.nuthatch.rx.Ack;
import io.nuthatch.rx.Batch;
import io.nuthatch.rx.BatchPolicy;
import io.nuthatch.rx.Change;
import io.nuthatch.rx.ConditionUnmetException;
import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.Kind;
import io.nuthatch.rx.ReadTransaction;
import io.nuthatch.rx.Store;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.StoreStat;
import io.nuthatch.rx.Table;
import io.nuthatch.rx.Watch;
import io.nuthatch.rx.Written;
import io.nuthatch.rx.flow.AckedWrites;
import io.nuthatch.rx.flow.Signals;
import io.nuthatch.store.v1.StoreGrpc;
import io.nuthatch.store.v1.StoreProto.Commit;
import io.nuthatch.store.v1.StoreProto.Committed;
import io.nuthatch.store.v1.StoreProto.StatRequest;
import io.nuthatch.store.v1.StoreProto.TableName;
import io.nuthatch.store.v1.StoreProto.TablesRequest;
import io.nuthatch.store.v1.StoreProto.TxnRequest;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.functions.Function;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.reactivestreams.Publisher;

/** A remote store. */
final class RemoteStore implements Store {

  final Calls calls;
  final Tables tables;

  private final RemoteTable main;

  RemoteStore(ManagedChannel channel, ConnectOptions options) {
    this.calls = new Calls(channel, options);
    this.tables = new Tables(calls);
    this.main = new RemoteTable(this, "", Optional.empty());
  }

  @Override
  public Table table(String name) {
    if (name.isEmpty()) {
      return main;
    }
    tables.name(name);
    return new RemoteTable(this, name, Optional.empty());
  }

  @Override
  public Table table(String name, Kind kind) {
    tables.name(name);
    return new RemoteTable(this, name, Optional.of(kind));
  }

  @Override
  public Table mainTable() {
    return main;
  }

  /** Casts a table of this store. */
  RemoteTable remoteTable(Table table) {
    if (table instanceof RemoteTable remote && remote.store == this) {
      return remote;
    }
    throw StoreException.of("table", "expected a table of this store, found one of another");
  }

  @Override
  public Single<List<String>> tableNames() {
    return calls
        .read(StoreGrpc.getTablesMethod(), TablesRequest.getDefaultInstance())
        .map(answer -> answer.getTablesList().stream().map(TableName::getName).toList());
  }

  /** Returns the tables of a batch that the server must open first. */
  Set<RemoteTable> unopened(Batch batch) {
    Set<RemoteTable> missing = Set.of();
    for (var write : batch.writes()) {
      var table = remoteTable(write.table());
      if (!tables.isOpen(table)) {
        missing = missing.isEmpty() ? new LinkedHashSet<>() : missing;
        missing.add(table);
      }
    }
    return missing;
  }

  /** Makes the server open tables. */
  Completable open(Set<RemoteTable> missing) {
    return Flowable.fromIterable(missing).concatMapCompletable(tables::open);
  }

  @Override
  public Single<Written> write(Batch batch) {
    return Single.defer(
        () -> {
          var commit = Commit.newBuilder();
          batch.writes().forEach(write -> commit.addWrites(Convert.write(write)));
          var request = TxnRequest.newBuilder().setCommit(commit).build();
          var call = calls.write(StoreGrpc.getTxnMethod(), request);
          return open(unopened(batch))
              .andThen(call)
              .map(answer -> committed(answer.getCommit()));
        });
  }

  private static Written committed(Committed committed) {
    return switch (committed.getOutcomeCase()) {
      case WRITTEN -> Convert.written(committed.getWritten());
      case UNMET -> {
        long write = committed.getUnmet();
        var text =
            "the condition at index " + write + " of the batch was not met; nothing was written";
        throw new ConditionUnmetException(text, (int) write);
      }
      default -> throw Failure.noAnswer("the outcome of the batch");
    };
  }

  @Override
  public <T> Flowable<Ack<T>> writeEach(
      Publisher<T> items, Function<? super T, Batch> batchOf, BatchPolicy policy) {
    return Signals.guard(
        Flowable.using(
            () -> new BatchStream(this),
            stream ->
                AckedWrites.of(items, batchOf, policy, stream::write)
                    .takeUntil(stream.closed().<Object>toFlowable()),
            BatchStream::close,
            // A subscriber that cancels receives no failure of the batches that this ends.
            false));
  }

  @Override
  public <T> Flowable<T> read(
      Function<? super ReadTransaction, ? extends Publisher<? extends T>> reads) {
    return Flowable.using(
        () -> new RemoteReadTransaction(this),
        one -> one.begin().flatMapPublisher(state -> Signals.caught(() -> reads.apply(state))),
        RemoteReadTransaction::close);
  }

  @Override
  public Flowable<Change> watch(Watch watch) {
    var changes =
        new StreamFlowable<>(calls, () -> new WatchPlan(calls, watch));
    if (watch.table().isEmpty()) {
      return changes;
    }
    return Flowable.defer(
        () -> {
          var table = remoteTable(watch.table().get());
          if (tables.isOpen(table)) {
            return changes;
          }
          // Subscribing waits for the start of the watch, so later commits are included.
          tables.open(table).blockingAwait();
          return changes;
        });
  }

  @Override
  public Single<StoreStat> stat() {
    return calls
        .read(StoreGrpc.getStatMethod(), StatRequest.getDefaultInstance())
        .map(Convert::stat);
  }

  @Override
  public Completable backup(Path folder, boolean compact) {
    return Backups.to(calls, folder, compact);
  }

  @Override
  public void close() {
    calls.close();
  }
}
