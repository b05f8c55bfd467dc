package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What holds of stores in the process alone: memory, transactions, files. */
class LocalOnlyTest {

  private static final StoreOptions QUICK = StoreOptions.defaults().durability(Durability.NONE);

  @TempDir Path folder;
  private LocalStore store;
  private Table table;

  @BeforeEach
  void open() {
    store = Store.open(folder.resolve("store"), QUICK);
    table = store.table("rows");
  }

  @AfterEach
  void close() {
    store.close();
  }

  private void fill(int count) {
    var batch = new Batch();
    for (int i = 0; i < count; i++) {
      batch.put(table, bytes("key%06d".formatted(i)), bytes("value" + i));
    }
    store.write(batch).blockingGet();
  }

  private long openTransactions() {
    return store.stat().blockingGet().openTransactions();
  }

  @Test
  void segments_that_a_mapper_keeps_throw_when_they_are_used_later() {
    fill(1000);
    var kept = new ArrayList<MemorySegment>();
    table.scan(Scan.all(), (key, value) -> kept.add(value)).blockingSubscribe();
    assertEquals(1000, kept.size());
    for (var value : kept) {
      assertThrows(IllegalStateException.class, () -> value.get(ValueLayout.JAVA_BYTE, 0));
    }
  }

  @Test
  void segments_that_a_mapper_keeps_throw_while_their_scan_waits() {
    fill(1000);
    var kept = new ArrayList<MemorySegment>();
    var rows = table.scan(Scan.all(), (key, value) -> kept.add(value)).test(1);
    rows.assertValueCount(1);
    assertTrue(kept.size() < 100, kept.size() + " rows were read ahead");
    var value = kept.getFirst();
    assertThrows(IllegalStateException.class, () -> value.get(ValueLayout.JAVA_BYTE, 0));
    rows.cancel();
  }

  @Test
  void a_mapper_sees_no_byte_beyond_its_row_and_writes_none() {
    fill(1);
    RowMapper<Boolean> beyond = (key, value) -> value.get(ValueLayout.JAVA_BYTE, 6) == 0;
    table.scan(Scan.all(), beyond).test().assertError(IndexOutOfBoundsException.class);
    RowMapper<Boolean> writes =
        (key, value) -> {
          value.set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
          return true;
        };
    table.scan(Scan.all(), writes).test().assertError(IllegalArgumentException.class);
  }

  @Test
  void a_scan_has_no_transaction_before_it_is_asked_and_none_after_it_ended() {
    fill(10_000);
    assertEquals(0, openTransactions());
    var rows = table.scan(Scan.all().batchRows(100)).test(0);
    assertEquals(0, openTransactions());
    rows.request(1);
    assertEquals(1, openTransactions());
    rows.cancel();
    assertEquals(0, openTransactions());
    assertEquals(10, table.scan().take(10).count().blockingGet());
    assertEquals(0, openTransactions());
    assertEquals(10_000, table.scan().observeOn(Schedulers.io()).count().blockingGet());
    table.scan().test(10_000).assertComplete();
    assertEquals(0, openTransactions());
    assertEquals(5, table.scanParallel(Scan.all(), Parallel.split(2)).take(5).count().blockingGet());
  }

  @Test
  void operators_that_poll_a_scan_get_what_others_get() {
    fill(3000);
    var scan = table.scan().map(Row::keyText);
    var all = scan.toList().blockingGet();
    assertEquals(3000, all.size());
    var polled = table.scan().observeOn(Schedulers.computation(), false, 8).map(Row::keyText);
    assertEquals(all, polled.toList().blockingGet());
    var flat = table.scan().concatMapIterable(row -> List.of(row.keyText()));
    assertEquals(all, flat.toList().blockingGet());
    var zipped = Flowable.zip(table.scan(), table.scan(), (one, other) -> one.equals(other));
    assertTrue(zipped.all(same -> same).blockingGet());
    RowMapper<Integer> failing = (key, value) -> 1 / (value.byteSize() == 8 ? 0 : 1);
    table
        .scan(Scan.all(), failing)
        .observeOn(Schedulers.io())
        .test()
        .awaitDone(60, SECONDS)
        .assertError(ArithmeticException.class)
        .assertValueCount(100);
    var waiting = table.scan().observeOn(Schedulers.io(), false, 1).test(1).awaitCount(1);
    store.close();
    waiting.request(1);
    waiting.awaitDone(60, SECONDS).assertError(StoreClosedException.class);
  }

  @Test
  void asking_for_no_rows_is_an_error_of_the_subscriber() {
    fill(1);
    table
        .scan()
        .subscribe(
            new org.reactivestreams.Subscriber<>() {
              @Override
              public void onSubscribe(org.reactivestreams.Subscription subscription) {
                subscription.request(0);
              }

              @Override
              public void onNext(Row row) {
                throw new AssertionError("nobody asked for a row");
              }

              @Override
              public void onError(Throwable thrown) {
                assertInstanceOf(IllegalArgumentException.class, thrown);
              }

              @Override
              public void onComplete() {
                throw new AssertionError("it did not end well");
              }
            });
    assertEquals(0, openTransactions());
  }

  @Test
  void closing_in_the_midst_of_all_kinds_of_work_fails_it_and_crashes_nothing() throws Exception {
    fill(20_000);
    for (int round = 0; round < 12; round++) {
      try (var threads = Executors.newCachedThreadPool()) {
        var started = new CountDownLatch(6);
        var work = new ArrayList<Future<?>>();
        var rows = table;
        RowMapper<Byte> first = (key, value) -> value.get(ValueLayout.JAVA_BYTE, 0);
        List<Runnable> kinds =
            List.of(
                () -> rows.scan().blockingForEach(row -> {}),
                () -> rows.scan(Scan.all(), first).blockingForEach(one -> {}),
                () -> rows.scan().observeOn(Schedulers.io()).blockingForEach(row -> {}),
                () -> rows.scanParallel(Scan.all(), Parallel.split(2)).blockingForEach(r -> {}),
                () -> rows.get(bytes("key000001")).blockingGet(),
                () -> rows.put(bytes("key000002"), bytes("new")).blockingAwait());
        for (var kind : kinds) {
          work.add(threads.submit(() -> repeat(kind, started)));
        }
        started.await();
        store.close();
        for (var each : work) {
          each.get();
        }
      }
      open();
      assertEquals(20_000, table.count().blockingGet());
    }
  }

  private static void repeat(Runnable work, CountDownLatch started) {
    boolean isFirst = true;
    while (true) {
      try {
        work.run();
      } catch (StoreClosedException expected) {
        return;
      }
      if (isFirst) {
        started.countDown();
        isFirst = false;
      }
    }
  }

  @Test
  void opening_tells_what_is_wrong() {
    var thrown = assertThrows(StoreException.class, () -> Store.open(folder.resolve("store")));
    assertEquals("already-open", thrown.code());
    thrown = assertThrows(StoreException.class, () -> Store.open(folder.resolve("no/such")));
    assertEquals("io", thrown.code());
    assertTrue(thrown.getMessage().contains("no/such"), thrown.getMessage());
    var small = QUICK.reserve(5);
    thrown = assertThrows(StoreException.class, () -> Store.open(folder.resolve("b"), small));
    assertEquals("options", thrown.code());
    thrown = assertThrows(StoreException.class, () -> Scan.all().batchRows(0));
    assertEquals("options", thrown.code());
  }

  @Test
  void a_store_that_is_read_only_refuses_writes_and_one_that_is_full_says_so() {
    fill(1);
    store.close();
    try (var readOnly = Store.open(folder.resolve("store"), QUICK.readOnly(true))) {
      var put = readOnly.table("rows").put(bytes("a"), bytes("b")).test();
      put.awaitDone(60, SECONDS).assertError(thrown -> code(thrown).equals("read-only"));
    }
    try (var small = Store.open(folder.resolve("small"), QUICK.limit(1 << 20))) {
      var put = small.table("rows").put(bytes("a"), new byte[2 << 20]).test();
      put.awaitDone(60, SECONDS).assertError(StoreFullException.class);
    }
  }

  private static String code(Throwable thrown) {
    return ((StoreException) thrown).code();
  }

  @Test
  void a_store_is_verified_swept_synced_and_made_small() {
    fill(20_000);
    table.deleteRange(Range.prefix(bytes("key01"))).blockingGet();
    var last = store.verify().blockingLast();
    assertTrue(last.done() == last.all() && last.all() > 2, last.toString());
    store.sync().blockingAwait();
    assertEquals(0, store.sweep().blockingGet());
    var inUse = LocalStore.compact(folder.resolve("store")).test().awaitDone(60, SECONDS);
    inUse.assertError(thrown -> code(thrown).equals("already-open"));
    store.close();
    var compacted = LocalStore.compact(folder.resolve("store")).blockingGet();
    assertTrue(compacted.afterBytes() < compacted.beforeBytes(), compacted.toString());
    open();
    assertEquals(10_000, table.count().blockingGet());
  }

  @Test
  void a_watch_that_falls_behind_is_told_and_keeps_no_writer_waiting() {
    store.keepChanges(10, 1 << 20).blockingAwait();
    var watch = table.watch(Range.all()).test(1);
    fill(5000);
    fill(5000);
    watch.awaitCount(1);
    watch.request(Long.MAX_VALUE);
    watch.awaitDone(60, SECONDS).assertError(FellBehindException.class);
    store.keepNoChanges().blockingAwait();
    var none = table.watch(Range.all()).test().awaitDone(60, SECONDS);
    none.assertError(thrown -> code(thrown).equals("no-changes-kept"));
  }

  @Test
  void damage_is_told_as_such() throws Exception {
    store.close();
    Files.writeString(folder.resolve("store/data.mdb"), "this is no store".repeat(1000));
    var thrown = assertThrows(StoreDamagedException.class, this::open);
    assertEquals("not-a-store", thrown.code());
  }
}
