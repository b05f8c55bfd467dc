package io.nuthatch.rx.remote;

import io.grpc.MethodDescriptor;
import io.nuthatch.rx.Ack;
import io.nuthatch.rx.Batch;
import io.nuthatch.rx.BatchPolicy;
import io.nuthatch.rx.Change;
import io.nuthatch.rx.Condition;
import io.nuthatch.rx.CursorReader;
import io.nuthatch.rx.Entry;
import io.nuthatch.rx.Kind;
import io.nuthatch.rx.Parallel;
import io.nuthatch.rx.Range;
import io.nuthatch.rx.Row;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.Scan;
import io.nuthatch.rx.Table;
import io.nuthatch.rx.Watch;
import io.nuthatch.rx.Written;
import io.nuthatch.rx.flow.EmittingFlowable;
import io.nuthatch.rx.flow.PagedCursor;
import io.nuthatch.store.v1.StoreGrpc;
import io.nuthatch.store.v1.StoreProto.CountRequest;
import io.nuthatch.store.v1.StoreProto.DeleteRangeRequest;
import io.nuthatch.store.v1.StoreProto.DeleteRequest;
import io.nuthatch.store.v1.StoreProto.GetManyRequest;
import io.nuthatch.store.v1.StoreProto.GetManyResponse;
import io.nuthatch.store.v1.StoreProto.GetRequest;
import io.nuthatch.store.v1.StoreProto.GetResponse;
import io.nuthatch.store.v1.StoreProto.PutIfRequest;
import io.nuthatch.store.v1.StoreProto.PutRequest;
import io.nuthatch.store.v1.StoreProto.WriteResponse;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.reactivestreams.Publisher;

/** A table of a remote store. The first call that needs it makes the server open it. */
final class RemoteTable implements Table {

  /** Maximum number of concurrent lookups of a stream of keys. */
  private static final int LOOKUPS = 64;

  final RemoteStore store;
  final Optional<Kind> kind;
  private final String name;

  RemoteTable(RemoteStore store, String name, Optional<Kind> kind) {
    this.store = store;
    this.name = name;
    this.kind = kind;
  }

  @Override
  public String name() {
    return name;
  }

  private <Q, A> Single<A> read(MethodDescriptor<Q, A> method, Supplier<Q> request) {
    return Single.defer(() -> opened(store.calls.read(method, request.get())));
  }

  private <Q, A> Single<A> write(MethodDescriptor<Q, A> method, Supplier<Q> request) {
    return Single.defer(() -> opened(store.calls.write(method, request.get())));
  }

  private <A> Single<A> opened(Single<A> call) {
    return store.tables.isOpen(this) ? call : store.tables.open(this).andThen(call);
  }

  @Override
  public Maybe<byte[]> get(byte[] key) {
    return lookUp(key).mapOptional(RemoteTable::value);
  }

  @Override
  public Maybe<Entry> entry(byte[] key) {
    return lookUp(key).mapOptional(RemoteTable::entry);
  }

  private Single<GetResponse> lookUp(byte[] key) {
    return read(StoreGrpc.getGetMethod(), () -> getRequest(key));
  }

  GetRequest getRequest(byte[] key) {
    return GetRequest.newBuilder().setTable(name).setKey(Convert.bytes(key)).build();
  }

  GetManyRequest getManyRequest(List<byte[]> keys) {
    var request = GetManyRequest.newBuilder().setTable(name);
    keys.forEach(key -> request.addKeys(Convert.bytes(key)));
    return request.build();
  }

  static Optional<byte[]> value(GetResponse found) {
    return found.hasEntry()
        ? Optional.of(found.getEntry().getValue().toByteArray())
        : Optional.empty();
  }

  static Optional<Entry> entry(GetResponse found) {
    return found.hasEntry() ? Optional.of(Convert.entry(found.getEntry())) : Optional.empty();
  }

  static List<Optional<byte[]>> values(GetManyResponse found) {
    return found.getLookupsList().stream()
        .map(
            each ->
                each.hasEntry()
                    ? Optional.of(each.getEntry().getValue().toByteArray())
                    : Optional.<byte[]>empty())
        .toList();
  }

  @Override
  public Single<List<Optional<byte[]>>> getMany(List<byte[]> keys) {
    return read(StoreGrpc.getGetManyMethod(), () -> getManyRequest(keys))
        .map(RemoteTable::values);
  }

  @Override
  public Flowable<Row> getEach(Publisher<byte[]> keys) {
    return Flowable.fromPublisher(keys)
        .concatMapEager(
            key -> get(key).map(value -> new Row(key, value)).toFlowable(), LOOKUPS, 1);
  }

  @Override
  public Flowable<Row> scan(Scan scan) {
    return scan(scan, RowMapper.COPY);
  }

  @Override
  public <T> Flowable<T> scan(Scan scan, RowMapper<? extends T> mapper) {
    return opened(messages(scan, rows -> rows.read(mapper)));
  }

  /** Returns the items that {@code reading} creates from the messages of a scan. */
  <T> Flowable<T> messages(Scan scan, ScanPlan.Reading<T> reading) {
    return new StreamFlowable<>(
        store.calls,
        () -> new ScanPlan<>(store.calls, Convert.scan(name, scan), reading));
  }

  /** Returns a stream that begins after the server has opened the table. */
  <T> Flowable<T> opened(Flowable<T> stream) {
    return Flowable.defer(
        () ->
            store.tables.isOpen(this) ? stream : store.tables.open(this).andThen(stream));
  }

  @Override
  public <T> Flowable<T> scanParallel(
      Scan scan, Parallel parallel, RowMapper<? extends T> mapper) {
    return ParallelScans.of(this, scan, parallel, mapper);
  }

  @Override
  public <T> Flowable<T> cursor(CursorReader<T> reader) {
    return new EmittingFlowable<>(
        Schedulers.io(),
        emission -> {
          try (var transaction = new RemoteReadTransaction(store)) {
            emission.onStop(transaction::close);
            store.tables.open(this).blockingAwait();
            transaction.begin().ignoreElement().blockingAwait();
            reader.read(new PagedCursor(scan -> transaction.rows(this, scan)), emission::onNext);
          } finally {
            emission.ended();
          }
        });
  }

  @Override
  public Single<Long> count(Range range) {
    return read(
            StoreGrpc.getCountMethod(),
            () ->
                CountRequest.newBuilder().setTable(name).setRange(Convert.range(range)).build())
        .map(answer -> answer.getCount());
  }

  @Override
  public Completable put(byte[] key, byte[] value) {
    return put(key, value, Optional.empty());
  }

  @Override
  public Completable put(byte[] key, byte[] value, Instant expiresAt) {
    return put(key, value, Optional.of(expiresAt));
  }

  private Completable put(byte[] key, byte[] value, Optional<Instant> expiresAt) {
    return write(
            StoreGrpc.getPutMethod(),
            () -> {
              var request =
                  PutRequest.newBuilder()
                      .setTable(name)
                      .setKey(Convert.bytes(key))
                      .setValue(Convert.bytes(value));
              expiresAt.ifPresent(moment -> request.setExpiresAtMs(Convert.millis(moment)));
              return request.build();
            })
        .ignoreElement();
  }

  @Override
  public Single<Boolean> putIf(byte[] key, byte[] value, Condition condition) {
    return write(
            StoreGrpc.getPutIfMethod(),
            () ->
                PutIfRequest.newBuilder()
                    .setTable(name)
                    .setKey(Convert.bytes(key))
                    .setValue(Convert.bytes(value))
                    .setCondition(Convert.condition(condition))
                    .build())
        .map(answer -> answer.hasWritten());
  }

  private Single<Written> deleteOne(byte[] key) {
    return write(
            StoreGrpc.getDeleteMethod(),
            () ->
                DeleteRequest.newBuilder().setTable(name).setKey(Convert.bytes(key)).build())
        .map(RemoteTable::written);
  }

  private static Written written(WriteResponse answer) {
    return Convert.written(answer.getWritten());
  }

  @Override
  public Completable delete(byte[] key) {
    return deleteOne(key).ignoreElement();
  }

  @Override
  public Single<Boolean> remove(byte[] key) {
    return deleteOne(key).map(written -> written.deleted() > 0);
  }

  @Override
  public Single<Long> deleteRange(Range range) {
    return write(
            StoreGrpc.getDeleteRangeMethod(),
            () ->
                DeleteRangeRequest.newBuilder()
                    .setTable(name)
                    .setRange(Convert.range(range))
                    .build())
        .map(answer -> written(answer).deleted());
  }

  @Override
  public Flowable<Ack<Row>> batch(Publisher<Row> rows, BatchPolicy policy) {
    return store.writeEach(rows, row -> new Batch().put(this, row.key(), row.value()), policy);
  }

  @Override
  public Flowable<Ack<byte[]>> delete(Publisher<byte[]> keys, BatchPolicy policy) {
    return store.writeEach(keys, key -> new Batch().delete(this, key), policy);
  }

  @Override
  public Flowable<Change> watch(Range range) {
    return store.watch(Watch.of(this).range(range));
  }
}
