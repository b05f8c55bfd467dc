package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.processors.PublishProcessor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

/** What holds of every store, wherever it is. A class for each kind of store runs all of it. */
abstract class StoreContract extends FailingSubscriberContract {

  @Test
  void every_combination_of_bounds_selects_what_the_table_says() {
    fill(RangeTable.KEYS.toArray(String[]::new));
    var cases = RangeTable.cases();
    assertTrue(cases.size() > 700, cases.size() + " rows are not all");
    for (var each : cases) {
      assertEquals(each.keys(), keys(table.scan(each.scan())), each.line());
      if (!each.isLimited()) {
        var found = each.keys().isEmpty() ? List.<String>of() : List.of(each.keys().split(" "));
        var range = each.scan().range();
        assertEquals(found.size(), table.count(range).blockingGet(), each.line());
        for (var key : RangeTable.KEYS) {
          assertEquals(found.contains(key), range.contains(bytes(key)), each.line() + ": " + key);
        }
      }
    }
  }

  @Test
  void missing_and_empty_are_distinct() {
    assertTrue(table.get(bytes("a")).isEmpty().blockingGet());
    table.put(bytes("a"), new byte[0]).blockingAwait();
    assertArrayEquals(new byte[0], table.get(bytes("a")).blockingGet());
    table.delete(bytes("a")).blockingAwait();
    assertTrue(table.get(bytes("a")).isEmpty().blockingGet());
    assertFalse(table.remove(bytes("a")).blockingGet());
  }

  @Test
  void nothing_happens_before_it_is_subscribed_to_and_all_of_it_each_time() {
    var put = table.put(bytes("a"), bytes("1"));
    var keys = table.scan().map(Row::keyText);
    assertTrue(table.get(bytes("a")).isEmpty().blockingGet());
    put.blockingAwait();
    assertEquals(List.of("a"), keys.toList().blockingGet());
    fill("b");
    assertEquals(List.of("a", "b"), keys.toList().blockingGet());
  }

  @Test
  void a_batch_whose_condition_fails_writes_nothing_and_names_the_condition() {
    fill("a");
    var batch =
        new Batch()
            .put(table, bytes("b"), bytes("2"))
            .check(table, bytes("a"), Condition.equalTo(bytes("other")));
    var thrown =
        assertThrows(ConditionUnmetException.class, () -> store.write(batch).blockingGet());
    assertEquals(1, thrown.write());
    assertEquals("a", keys(table.scan()));
  }

  @Test
  void a_mapper_sees_each_row_in_place() {
    fill("a", "b", "c");
    var found =
        table.scan(
            Scan.all(),
            (key, value) -> {
              byte first = key.get(ValueLayout.JAVA_BYTE, 0);
              return first == 'b' ? null : (char) first + ":" + value.byteSize();
            });
    assertEquals(List.of("a:10", "c:10"), found.toList().blockingGet());
  }

  @Test
  void no_more_rows_come_than_are_asked_for() {
    fill("a", "b", "c", "d");
    var rows = table.scan().map(Row::keyText).test(0);
    rows.assertEmpty();
    rows.request(2);
    rows.awaitCount(2).assertValues("a", "b").assertNotComplete();
    rows.request(1);
    rows.awaitCount(3).assertValues("a", "b", "c").assertNotComplete();
    rows.request(2);
    rows.awaitDone(60, SECONDS).assertValues("a", "b", "c", "d").assertComplete();
  }

  @Test
  void a_scan_can_be_cancelled_and_run_again() {
    fill("a", "b", "c");
    var scan = table.scan().map(Row::keyText);
    assertEquals("a", scan.firstElement().blockingGet());
    scan.test(1).awaitCount(1).assertValue("a").cancel();
    scan.test().awaitDone(60, SECONDS).assertValues("a", "b", "c");
  }

  @Test
  void a_mapper_that_throws_fails_its_stream_after_the_rows_before() {
    fill("a", "b", "c");
    RowMapper<String> mapper =
        (key, value) -> {
          if (key.get(ValueLayout.JAVA_BYTE, 0) == 'c') {
            throw new IllegalArgumentException("no c");
          }
          return text(key);
        };
    table
        .scan(Scan.all(), mapper)
        .test()
        .awaitDone(60, SECONDS)
        .assertFailure(IllegalArgumentException.class, "a", "b");
    assertEquals("a b c", keys(table.scan()));
  }

  static String text(MemorySegment segment) {
    return new String(segment.toArray(ValueLayout.JAVA_BYTE), UTF_8);
  }

  @Test
  void many_keys_are_looked_up_at_once_or_as_they_come() {
    fill("a", "b", "c");
    var keys = List.of(bytes("c"), bytes("nobody"), bytes("a"));
    var found = table.getMany(keys).blockingGet();
    assertEquals(
        List.of("value of c", "", "value of a"),
        found.stream().map(value -> value.map(v -> new String(v, UTF_8)).orElse("")).toList());
    assertEquals("c a", keys(table.getEach(Flowable.fromIterable(keys))));
  }

  @Test
  void rows_of_a_stamped_table_have_versions_and_expire() {
    var stamped = store.table("stamped", Kind.STAMPED);
    var later = Instant.now().plusSeconds(3600).truncatedTo(ChronoUnit.MILLIS);
    stamped.put(bytes("a"), bytes("1"), later).blockingAwait();
    stamped.put(bytes("gone"), bytes("2"), Instant.ofEpochMilli(5)).blockingAwait();
    var entry = stamped.entry(bytes("a")).blockingGet();
    assertEquals(Optional.of(later), entry.expiresAt());
    assertEquals("a", keys(stamped.scan()));
    var version = Condition.version(entry.version().getAsLong());
    assertTrue(stamped.putIf(bytes("a"), bytes("3"), version).blockingGet());
    assertFalse(stamped.putIf(bytes("a"), bytes("4"), version).blockingGet());
    var thrown =
        assertThrows(
            StoreException.class,
            () -> table.put(bytes("a"), bytes("1"), later).blockingAwait());
    assertEquals("table", thrown.code());
    assertTrue(table.entry(bytes("a")).isEmpty().blockingGet());
  }

  @Test
  void writes_answer_what_they_did() {
    assertTrue(table.putIf(bytes("a"), bytes("1"), Condition.absent()).blockingGet());
    assertFalse(table.putIf(bytes("a"), bytes("2"), Condition.absent()).blockingGet());
    assertTrue(table.putIf(bytes("a"), bytes("2"), Condition.equalTo(bytes("1"))).blockingGet());
    assertTrue(table.remove(bytes("a")).blockingGet());
    fill("a", "b", "ba", "c");
    assertEquals(2, table.deleteRange(Range.prefix(bytes("b"))).blockingGet());
    assertEquals("a c", keys(table.scan()));
    var thrown =
        assertThrows(
            StoreException.class, () -> table.put(new byte[0], bytes("1")).blockingAwait());
    assertEquals("length", thrown.code());
  }

  @Test
  void each_row_of_a_stream_is_acknowledged_in_order_and_fails_alone() {
    var rows = Flowable.range(0, 1000).map(i -> Row.of(i == 500 ? "" : "key" + i, "v" + i));
    var acks = table.put(rows).toList().blockingGet();
    assertEquals(1000, acks.size());
    for (int i = 0; i < 1000; i++) {
      assertEquals("v" + i, acks.get(i).item().valueText());
      assertEquals(i != 500, acks.get(i).outcome().isPresent(), "row " + i);
    }
    assertEquals("length", acks.get(500).failure().orElseThrow().code());
    assertEquals(999, table.count().blockingGet());
    var keys = Flowable.just(bytes("key1"), bytes("key2"));
    table.delete(keys).blockingForEach(Ack::orThrow);
    assertEquals(997, table.count().blockingGet());
  }

  @Test
  void the_rows_of_a_group_happen_together_or_not_at_all() {
    var policy = BatchPolicy.defaults().groups(4, Duration.ofHours(1));
    var rows = Flowable.just("a", "b", "c", "d", "e", "", "g", "h", "i").map(k -> Row.of(k, "v"));
    var acks = table.batch(rows, policy).toList().blockingGet();
    var written = acks.stream().map(ack -> ack.outcome().isPresent()).toList();
    assertEquals(
        List.of(true, true, true, true, false, false, false, false, true), written);
    assertEquals("a b c d i", keys(table.scan()));
    assertEquals(acks.get(0).outcome(), acks.get(3).outcome());
  }

  @Test
  void a_group_that_is_not_full_is_written_when_its_time_is_over() {
    var policy = BatchPolicy.defaults().groups(100, Duration.ofMillis(5));
    var rows = PublishProcessor.<Row>create();
    var acks = table.batch(rows, policy).test();
    rows.onNext(Row.of("a", "1"));
    rows.onNext(Row.of("b", "2"));
    acks.awaitCount(2).assertValueCount(2).assertNotComplete();
    assertEquals("a b", keys(table.scan()));
    rows.onComplete();
    acks.awaitDone(60, SECONDS).assertComplete();
  }

  @Test
  void no_more_items_are_asked_for_than_may_be_in_flight() {
    var asked = new AtomicLong();
    var rows =
        Flowable.range(0, 1000).map(i -> Row.of("key" + i, "v")).doOnRequest(asked::addAndGet);
    var acks = table.batch(rows, BatchPolicy.defaults().inFlight(10)).test(5);
    acks.awaitCount(5).assertValueCount(5);
    assertTrue(asked.get() <= 20, asked + " items");
    acks.request(Long.MAX_VALUE);
    acks.awaitDone(60, SECONDS).assertValueCount(1000).assertComplete();
  }

  @Test
  void a_cursor_goes_wherever_it_is_told() {
    fill("a", "b", "c", "d", "e");
    CursorReader<String> reader =
        (cursor, sink) -> {
          assertTrue(cursor.next());
          sink.onNext(cursor.row().keyText());
          assertTrue(cursor.last());
          sink.onNext(cursor.row().keyText());
          assertFalse(cursor.next());
          assertThrows(IllegalStateException.class, cursor::key);
          assertTrue(cursor.seek(bytes("bb")));
          sink.onNext(cursor.row().keyText());
          assertTrue(cursor.previous());
          sink.onNext(cursor.row().valueText());
          assertFalse(cursor.find(bytes("bb")));
          for (boolean more = cursor.first(); more; more = cursor.next()) {
            sink.onNext(cursor.row().keyText());
          }
        };
    table
        .cursor(reader)
        .test()
        .awaitDone(60, SECONDS)
        .assertResult("a", "e", "c", "value of b", "a", "b", "c", "d", "e");
    var few = table.cursor(reader).test(2).awaitCount(2).assertValues("a", "e");
    few.cancel();
  }

  @Test
  void a_read_transaction_stays_as_it_was_and_ends_with_its_stream() {
    fill("a", "b", "c");
    var kept = new AtomicReference<ReadTransaction>();
    var found =
        store
            .read(
                transaction -> {
                  kept.set(transaction);
                  return transaction
                      .scan(table, Scan.of(Range.all()).limit(2).reverse())
                      .doOnSubscribe(s -> table.delete(bytes("c")).blockingAwait())
                      .map(Row::keyText)
                      .concatWith(
                          transaction.get(table, bytes("c")).map(v -> new String(v, UTF_8)));
                })
            .toList()
            .blockingGet();
    // The first read decides which state it is, at the latest.
    assertTrue(
        List.of(List.of("c", "b", "value of c"), List.of("b", "a")).contains(found), "" + found);
    var ended = kept.get().get(table, bytes("a")).test().awaitDone(60, SECONDS);
    ended.assertError(StoreClosedException.class);
  }

  @Test
  void a_watch_tells_of_all_changes_in_order_and_goes_on_where_another_ended() {
    var watched = table.watch(Range.all()).test(3);
    table.put(bytes("a"), bytes("1")).blockingAwait();
    table.delete(bytes("a")).blockingAwait();
    fill("b", "c");
    watched.awaitCount(3);
    var changes = watched.values().stream();
    var operations = changes.map(c -> c.operation() + new String(c.key(), UTF_8)).toList();
    assertEquals(List.of("PUTa", "DELETEa", "PUTb"), operations);
    watched.cancel();
    var last = watched.values().getLast();
    assertEquals("rows", last.table());
    assertEquals("value of b", new String(last.value().orElseThrow(), UTF_8));
    var rest = store.watch(Watch.of(table).after(last.sequence())).test(1).awaitCount(1);
    assertArrayEquals(bytes("c"), rest.values().getFirst().key());
    rest.cancel();
    store
        .watch(Watch.all().after(1_000_000))
        .test()
        .awaitDone(60, SECONDS)
        .assertError(FellBehindException.class);
  }

  @Test
  void parallel_scans_have_every_row_once_and_in_order_where_that_is_asked_for() {
    var all = IntStream.range(0, 5000).mapToObj("key%05d"::formatted).toList();
    fill(all.toArray(String[]::new));
    var split = table.scanParallel(Scan.all(), Parallel.split(3)).map(Row::keyText);
    assertEquals(all, split.sorted().toList().blockingGet());
    var ordered = Parallel.split(2).ordered();
    assertEquals(
        all, table.scanParallel(Scan.all(), ordered).map(Row::keyText).toList().blockingGet());
    var backward =
        table.scanParallel(Scan.all().reverse(), ordered).map(Row::keyText).toList().blockingGet();
    assertEquals(all.reversed(), backward);
    var ranges =
        Parallel.of(
                Range.closed(bytes("key00010"), bytes("key00011")),
                Range.all().after(bytes("key04998")))
            .ordered();
    assertEquals("key00010 key00011 key04999", keys(table.scanParallel(Scan.all(), ranges)));
    var few = table.scanParallel(Scan.all(), Parallel.split(2)).take(3).toList().blockingGet();
    assertEquals(3, few.size());
    table
        .scanParallel(Scan.all().limit(1), ordered)
        .test()
        .awaitDone(60, SECONDS)
        .assertError(thrown -> ((StoreException) thrown).code().equals("options"));
  }

  @Test
  void many_threads_write_and_read_at_once() throws Exception {
    try (var threads = Executors.newFixedThreadPool(8)) {
      var tasks = new ArrayList<Callable<Void>>();
      for (int t = 0; t < 8; t++) {
        int thread = t;
        tasks.add(
            () -> {
              for (int i = 0; i < 50; i++) {
                table.put(bytes(thread + "-" + i), bytes("v")).blockingAwait();
                var found = table.scan(Range.prefix(bytes(thread + "-"))).count().blockingGet();
                assertEquals(i + 1, found);
              }
              return null;
            });
      }
      for (var done : threads.invokeAll(tasks)) {
        done.get();
      }
    }
    assertEquals(400, table.count().blockingGet());
  }

  @Test
  void what_runs_when_the_store_is_closed_fails_and_so_does_what_comes_later() {
    fill("a", "b", "c");
    var scan = table.scan().test(1).awaitCount(1);
    var watch = table.watch(Range.all()).test();
    store.close();
    scan.awaitDone(60, SECONDS).assertError(StoreClosedException.class);
    watch.awaitDone(60, SECONDS).assertError(StoreClosedException.class);
    table.scan().test().awaitDone(60, SECONDS).assertError(StoreClosedException.class);
    table.get(bytes("a")).test().awaitDone(60, SECONDS).assertError(StoreClosedException.class);
    var put = table.put(bytes("a"), bytes("b")).test();
    put.awaitDone(60, SECONDS).assertError(StoreClosedException.class);
    store.close();
  }

  @Test
  void other_libraries_of_reactive_streams_read_and_write() throws Exception {
    var rows = Flux.just("a", "b", "c").map(key -> Row.of(key, "v"));
    assertEquals(3L, Flux.from(table.put(rows)).count().block());
    var keys = Flux.from(table.scan()).map(Row::keyText).collectList().block();
    assertEquals(List.of("a", "b", "c"), keys);
    var flow = Publishers.toFlow(table.scan());
    var back = Flowable.fromPublisher(Publishers.fromFlow(flow));
    assertEquals("a b c", keys(back));
  }

  @Test
  void a_store_tells_of_itself_and_is_copied() throws Exception {
    fill("a", "b");
    assertEquals(List.of("rows"), store.tableNames().blockingGet());
    var stat = store.stat().blockingGet();
    assertEquals(2, stat.tables().getLast().entries());
    assertEquals(Kind.PLAIN, stat.tables().getLast().kind());
    assertTrue(stat.oldestChange().isPresent() && stat.sequence() >= 2, stat.toString());
    store.backup(folder.resolve("copy"), true).blockingAwait();
    var mode = Files.getPosixFilePermissions(folder.resolve("copy/data.mdb"));
    assertEquals("rw-------", PosixFilePermissions.toString(mode), "its user alone can read it");
    try (var copy = Store.open(folder.resolve("copy"))) {
      assertEquals("a b", keys(copy.table("rows").scan()));
    }
  }

  @Test
  void values_of_any_length_come_back_as_they_went() {
    for (int len : new int[] {0, 1, 4095, 4096, 4097, 100_000, 3_000_000}) {
      var value = new byte[len];
      new Random(len).nextBytes(value);
      table.put(bytes("long"), value).blockingAwait();
      assertArrayEquals(value, table.get(bytes("long")).blockingGet(), len + " bytes");
      assertArrayEquals(value, table.scan().blockingFirst().value(), len + " bytes");
    }
  }
}
