package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Ack;
import io.nuthatch.rx.Batch;
import io.nuthatch.rx.BatchPolicy;
import io.nuthatch.rx.Change;
import io.nuthatch.rx.Condition;
import io.nuthatch.rx.ConditionUnmetException;
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
import io.nuthatch.rx.flow.EmittingFlowable;
import io.nuthatch.rx.flow.PagedCursor;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.reactivestreams.Publisher;

/** A table of a local store. The first call that needs it opens it. */
final class OpenTable implements Table {

  /** Values up to this length are read with one call. */
  private static final long SHORT_VALUE = 4096;

  private static final long VALUE_LEN = Layouts.at(Layouts.ENTRY, "value_len");
  private static final long FOUND = Layouts.at(Layouts.ENTRY, "found");

  final OpenStore store;
  private final String name;
  private final Optional<Kind> kind;
  private volatile long handle;

  OpenTable(OpenStore store, String name, Optional<Kind> kind) {
    this.store = store;
    this.name = name;
    this.kind = kind;
  }

  @Override
  public String name() {
    return name;
  }

  /** Returns the handle; opens the table at the first call. */
  long handle() {
    store.check();
    long known = handle;
    return known != 0 ? known : open();
  }

  private synchronized long open() {
    if (handle == 0) {
      var scratch = Scratch.ofThread();
      var bytes = scratch.copy(name.getBytes(StandardCharsets.UTF_8));
      var out = scratch.take(8);
      int number = kind.map(Kind::ordinal).orElse(2);
      Native.openTable(store.handle, bytes, bytes.byteSize(), number, out, scratch);
      handle = out.get(JAVA_LONG, 0);
    }
    return handle;
  }

  @Override
  public Maybe<byte[]> get(byte[] key) {
    return Maybe.fromCallable(() -> value(key));
  }

  @Override
  public Maybe<Entry> entry(byte[] key) {
    return Maybe.fromCallable(() -> lookUp(key, Entries::entry));
  }

  private byte[] value(byte[] key) {
    return lookUp(key, (entry, value) -> value);
  }

  /** Returns the value of a key with its metadata; empty if the key is missing. */
  private <T> T lookUp(byte[] key, Entries.Maker<T> maker) {
    long table = handle();
    var scratch = Scratch.ofThread();
    var entry = scratch.take(Layouts.ENTRY.byteSize());
    var bytes = scratch.copy(key);
    var room = scratch.take(SHORT_VALUE);
    Native.get(table, bytes, key.length, room, SHORT_VALUE, entry, scratch);
    long len = entry.get(JAVA_LONG, VALUE_LEN);
    if (len <= SHORT_VALUE) {
      boolean isFound = entry.get(JAVA_INT, FOUND) != 0;
      return isFound ? maker.make(entry, Rows.bytes(room.address(), len)) : null;
    }
    return lookUpLong(key, len, maker);
  }

  private <T> T lookUpLong(byte[] key, long atLeast, Entries.Maker<T> maker) {
    long needed = atLeast;
    while (true) {
      long table = handle();
      var scratch = Scratch.ofThread();
      var entry = scratch.take(Layouts.ENTRY.byteSize());
      var bytes = scratch.copy(key);
      try (var arena = Arena.ofConfined()) {
        var room = arena.allocate(needed);
        Native.get(table, bytes, key.length, room, needed, entry, scratch);
        if (entry.get(JAVA_INT, FOUND) == 0) {
          return null;
        }
        long len = entry.get(JAVA_LONG, VALUE_LEN);
        if (len <= needed) {
          return maker.make(entry, Rows.bytes(room.address(), len));
        }
        // Another writer replaced the value by a longer one meanwhile.
        needed = len;
      }
    }
  }

  @Override
  public Single<List<Optional<byte[]>>> getMany(List<byte[]> keys) {
    return Single.using(
        () -> new OpenReadTransaction(store),
        one -> one.getMany(this, keys),
        OpenReadTransaction::close);
  }

  @Override
  public Flowable<Row> getEach(Publisher<byte[]> keys) {
    return Flowable.fromPublisher(keys)
        .mapOptional(key -> Optional.ofNullable(value(key)).map(value -> new Row(key, value)));
  }

  @Override
  public Flowable<Row> scan(Scan scan) {
    return scan(scan, RowMapper.COPY);
  }

  @Override
  public <T> Flowable<T> scan(Scan scan, RowMapper<? extends T> mapper) {
    return new ScanFlowable<>(store, () -> new NativeScan(store, () -> openScan(scan)), mapper);
  }

  private long openScan(Scan scan) {
    long table = handle();
    var scratch = Scratch.ofThread();
    var out = scratch.take(8);
    Native.openScan(table, scratch.scan(scan), out, scratch);
    return out.get(JAVA_LONG, 0);
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
          try (var transaction = new OpenReadTransaction(store)) {
            var cursor = new PagedCursor(scan -> transaction.rows(this, scan, (int) scan.limit()));
            reader.read(cursor, emission::onNext);
          }
        });
  }

  @Override
  public Single<Long> count(Range range) {
    return Single.fromCallable(
        () -> {
          long table = handle();
          var scratch = Scratch.ofThread();
          var out = scratch.take(8);
          Native.count(table, scratch.range(range), out, scratch);
          return out.get(JAVA_LONG, 0);
        });
  }

  @Override
  public Completable put(byte[] key, byte[] value) {
    return store.write(new Batch().put(this, key, value)).ignoreElement();
  }

  @Override
  public Completable put(byte[] key, byte[] value, Instant expiresAt) {
    return store.write(new Batch().put(this, key, value, expiresAt)).ignoreElement();
  }

  @Override
  public Single<Boolean> putIf(byte[] key, byte[] value, Condition condition) {
    return store
        .write(new Batch().check(this, key, condition).put(this, key, value))
        .map(written -> true)
        .onErrorResumeNext(
            thrown ->
                thrown instanceof ConditionUnmetException
                    ? Single.just(false)
                    : Single.error(thrown));
  }

  @Override
  public Completable delete(byte[] key) {
    return store.write(new Batch().delete(this, key)).ignoreElement();
  }

  @Override
  public Single<Boolean> remove(byte[] key) {
    return store.write(new Batch().delete(this, key)).map(written -> written.deleted() > 0);
  }

  @Override
  public Single<Long> deleteRange(Range range) {
    return store.write(new Batch().deleteRange(this, range)).map(written -> written.deleted());
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

  /** Returns the parts of a scan for several threads, in the order of the scan. */
  NativeScan[] openParts(Scan scan, Parallel parallel) {
    long table = handle();
    var scratch = Scratch.ofThread();
    int maxParts = parallel.ranges().isEmpty() ? parallel.threads() * 16 : parallel.ranges().size();
    var scans = scratch.take(maxParts * 8L);
    var count = scratch.take(8);
    var ranges = parallel.ranges();
    MemorySegment structs = ranges.isEmpty() ? MemorySegment.NULL : scratch.ranges(ranges);
    Native.openParts(
        table,
        scratch.scan(scan),
        parallel.threads(),
        structs,
        ranges.size(),
        scans,
        maxParts,
        count,
        scratch);
    var parts = new NativeScan[(int) count.get(JAVA_LONG, 0)];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = new NativeScan(store, scans.getAtIndex(JAVA_LONG, i));
    }
    return parts;
  }
}
