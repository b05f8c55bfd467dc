package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Entry;
import io.nuthatch.rx.Row;
import io.nuthatch.rx.Scan;
import io.nuthatch.rx.ReadTransaction;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.Table;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** A read transaction of a local store. It is not closed while a thread reads from it. */
final class OpenReadTransaction implements ReadTransaction, AutoCloseable {

  private static final int PAGE_ROWS = 256;
  private static final long VALUE = Layouts.at(Layouts.ENTRY, "value");
  private static final long VALUE_LEN = Layouts.at(Layouts.ENTRY, "value_len");
  private static final long FOUND = Layouts.at(Layouts.ENTRY, "found");

  private final OpenStore store;
  private final long handle;
  private boolean isClosed;

  OpenReadTransaction(OpenStore store) {
    store.check();
    this.store = store;
    var scratch = Scratch.ofThread();
    var out = scratch.zeros(24);
    Native.openReadTransaction(store.handle, out, out.asSlice(8), out.asSlice(16), scratch);
    this.handle = out.get(JAVA_LONG, 0);
    store.handles.opened();
  }

  private void check() {
    store.check();
    if (isClosed) {
      throw StoreException.of("closed", "the read transaction has ended");
    }
  }

  @Override
  public Maybe<byte[]> get(Table table, byte[] key) {
    return Maybe.fromCallable(() -> lookUp(table, List.of(key), (e, value) -> value).getFirst())
        .mapOptional(found -> found);
  }

  @Override
  public Maybe<Entry> entry(Table table, byte[] key) {
    return Maybe.fromCallable(() -> lookUp(table, List.of(key), Entries::entry).getFirst())
        .mapOptional(found -> found);
  }

  @Override
  public Single<List<Optional<byte[]>>> getMany(Table table, List<byte[]> keys) {
    return Single.fromCallable(() -> lookUp(table, keys, (entry, value) -> value));
  }

  private synchronized <T> List<Optional<T>> lookUp(
      Table table, List<byte[]> keys, Entries.Maker<T> maker) {
    check();
    long of = store.tableHandle(table);
    var scratch = Scratch.ofThread();
    var structs = scratch.take(Layouts.KEY.byteSize() * keys.size());
    for (int i = 0; i < keys.size(); i++) {
      structs.setAtIndex(JAVA_LONG, i * 2L, scratch.copy(keys.get(i)).address());
      structs.setAtIndex(JAVA_LONG, i * 2L + 1, keys.get(i).length);
    }
    long each = Layouts.ENTRY.byteSize();
    var entries = scratch.take(each * keys.size());
    Native.readTransactionGet(handle, of, structs, entries, keys.size(), scratch);
    var found = new ArrayList<Optional<T>>(keys.size());
    for (int i = 0; i < keys.size(); i++) {
      var entry = entries.asSlice(i * each, each);
      if (entry.get(JAVA_INT, FOUND) == 0) {
        found.add(Optional.empty());
      } else {
        var value = Rows.bytes(entry.get(JAVA_LONG, VALUE), entry.get(JAVA_LONG, VALUE_LEN));
        found.add(Optional.of(maker.make(entry, value)));
      }
    }
    return found;
  }

  /** Returns the first rows of a scan, at most {@code maxRows}. */
  synchronized List<Row> rows(Table table, Scan scan, int maxRows) {
    check();
    long of = store.tableHandle(table);
    var scratch = Scratch.ofThread();
    long each = Layouts.ROW.byteSize();
    var rows = scratch.take(each * maxRows);
    var count = scratch.take(8);
    Native.readTransactionRows(handle, of, scratch.scan(scan), rows, maxRows, count, scratch);
    int rowCount = (int) count.get(JAVA_LONG, 0);
    var found = new ArrayList<Row>(rowCount);
    for (int i = 0; i < rowCount; i++) {
      found.add(Rows.row(rows.asSlice(i * each, each)));
    }
    return found;
  }

  @Override
  public Flowable<Row> scan(Table table, Scan scan) {
    var pages =
        Flowable.<List<Row>, Scan>generate(
            () -> scan,
            (rest, emitter) -> {
              int maxRows = (int) Math.min(Math.min(PAGE_ROWS, rest.batchRows()), rest.limit());
              var rows = maxRows == 0 ? List.<Row>of() : rows(table, rest, maxRows);
              if (rows.isEmpty()) {
                emitter.onComplete();
                return rest;
              }
              emitter.onNext(rows);
              return after(rest, rows);
            });
    return pages.concatMapIterable(rows -> rows, 1);
  }

  /** Returns the rest of a scan after some rows. */
  private static Scan after(Scan scan, List<Row> rows) {
    var last = rows.getLast().key();
    var range = scan.range();
    var rest = scan.isReverse() ? range.before(last) : range.after(last);
    long limit = scan.limit();
    return new Scan(
        rest,
        scan.isReverse(),
        limit == Long.MAX_VALUE ? limit : limit - rows.size(),
        scan.isKeysOnly(),
        scan.batchRows(),
        scan.batchBytes());
  }

  @Override
  public synchronized void close() {
    if (!isClosed) {
      isClosed = true;
      Native.closeReadTransaction(handle, Scratch.ofThread());
      store.handles.closed();
    }
  }
}
