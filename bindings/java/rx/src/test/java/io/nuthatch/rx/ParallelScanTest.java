package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.reactivex.rxjava3.plugins.RxJavaPlugins;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How threads share a scan of a local store, counted and not timed. */
class ParallelScanTest {

  private static final int ROWS = 100_000;
  private static final RowMapper<Byte> FIRST = (key, value) -> value.get(ValueLayout.JAVA_BYTE, 0);

  @TempDir Path folder;
  private LocalStore store;
  private Table table;

  @BeforeEach
  void open() {
    var quick = StoreOptions.defaults().durability(Durability.NONE);
    store = Store.open(folder.resolve("store"), quick);
    table = store.table("rows");
    var batch = new Batch();
    for (int i = 0; i < ROWS; i++) {
      batch.put(table, bytes("key%06d".formatted(i)), bytes("v"));
    }
    store.write(batch).blockingGet();
  }

  @AfterEach
  void close() {
    RxJavaPlugins.setScheduleHandler(null);
    store.close();
  }

  @Test
  void a_parallel_scan_schedules_its_threads_for_parts_and_not_for_chunks() {
    for (var parallel : List.of(Parallel.split(2), Parallel.split(2).ordered())) {
      var scheduled = new AtomicInteger();
      RxJavaPlugins.setScheduleHandler(
          task -> {
            scheduled.incrementAndGet();
            return task;
          });
      assertEquals(ROWS, table.scanParallel(Scan.all(), parallel, FIRST).count().blockingGet());
      // Two threads, and at most once more for each of the 32 parts: there are far more chunks.
      assertTrue(scheduled.get() <= 2 + 32, scheduled + " tasks");
    }
  }

  @Test
  void mappers_of_a_parallel_scan_run_at_the_same_time() {
    var met = new CountDownLatch(2);
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    RowMapper<Byte> meets =
        (key, value) -> {
          if (threads.add(Thread.currentThread())) {
            met.countDown();
            assertTrue(met.await(60, SECONDS), "one thread alone reads");
          }
          return 1;
        };
    assertEquals(
        ROWS, table.scanParallel(Scan.all(), Parallel.split(2), meets).count().blockingGet());
  }

  @Test
  void a_thread_reads_on_while_another_one_emits() {
    var mapped = new AtomicLong();
    var readOn = new CountDownLatch(1);
    RowMapper<Byte> counting =
        (key, value) -> {
          // More than the first chunks of all parts that are open at a time.
          if (mapped.incrementAndGet() == 4_000) {
            readOn.countDown();
          }
          return 1;
        };
    long count =
        table
            .scanParallel(Scan.all(), Parallel.split(2), counting)
            .doOnNext(each -> assertTrue(readOn.await(60, SECONDS), "it waits for the subscriber"))
            .count()
            .blockingGet();
    assertEquals(ROWS, count);
  }

  @Test
  void a_subscriber_that_requests_few_rows_has_few_read_ahead() {
    var mapped = new AtomicLong();
    RowMapper<Long> counting = (key, value) -> mapped.incrementAndGet();
    // Four parts of a scan are open at a time, each with at most eight chunks of 1,024 rows.
    long most = 4 * 9 * 1024;
    var rows = table.scanParallel(Scan.all(), Parallel.split(2), counting).test(0);
    assertEquals(0, mapped.get());
    rows.request(1);
    rows.awaitCount(1);
    for (int i = 0; i < 10; i++) {
      rows.request(10);
    }
    rows.awaitCount(101).assertValueCount(101);
    assertTrue(mapped.get() <= most + 101, mapped + " rows were read");
    rows.request(Long.MAX_VALUE);
    rows.awaitDone(60, SECONDS).assertComplete().assertValueCount(ROWS);
    assertEquals(ROWS, mapped.get());
  }

  @Test
  void a_cancelled_parallel_scan_holds_no_transaction() {
    for (var parallel : List.of(Parallel.split(4), Parallel.split(4).ordered())) {
      var rows = table.scanParallel(Scan.all(), parallel).test(10);
      rows.awaitCount(10);
      rows.cancel();
      while (store.stat().blockingGet().openTransactions() > 0) {
        Thread.onSpinWait();
      }
    }
  }

  @Test
  void rows_before_the_one_of_which_an_ordered_mapper_fails_come_first() {
    RowMapper<String> failing =
        (key, value) -> {
          var text = new String(key.toArray(ValueLayout.JAVA_BYTE));
          if (text.equals("key050000")) {
            throw new IllegalStateException(text);
          }
          return text;
        };
    table
        .scanParallel(Scan.all(), Parallel.split(3).ordered(), failing)
        .test()
        .awaitDone(60, SECONDS)
        .assertError(IllegalStateException.class)
        .assertValueCount(50_000);
  }

  @Test
  void an_error_thrown_by_the_subscriber_ends_a_parallel_scan() {
    table
        .scanParallel(Scan.all(), Parallel.split(2), FIRST)
        .map(
            each -> {
              throw new LinkageError("as the test wants it");
            })
        .test()
        .awaitDone(60, SECONDS)
        .assertError(LinkageError.class);
    while (store.stat().blockingGet().openTransactions() > 0) {
      Thread.onSpinWait();
    }
  }

  @Test
  void a_parallel_scan_goes_on_where_all_work_is_on_the_thread_of_the_subscriber() {
    RxJavaPlugins.setIoSchedulerHandler(scheduler -> Schedulers.trampoline());
    try {
      var rows = table.scanParallel(Scan.all(), Parallel.split(2).ordered()).test(0);
      for (int i = 0; i < ROWS; i += 1000) {
        rows.request(1000);
      }
      rows.assertValueCount(ROWS).assertComplete();
    } finally {
      RxJavaPlugins.setIoSchedulerHandler(null);
    }
  }
}
