package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.processors.PublishProcessor;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Servers that go away, come back, or say nothing. */
class RemoteFailuresTest {

  /** So patient that a server can be started meanwhile. */
  private static final ConnectOptions PATIENT =
      ConnectOptions.defaults().tries(50).deadline(Duration.ofSeconds(60));

  @TempDir Path folder;
  private Served served;
  private Store store;
  private Table table;

  @BeforeEach
  void start() throws Exception {
    served = Served.start(folder.resolve("store"));
    store = Store.connect(served.address, PATIENT);
    table = store.table("rows");
  }

  @AfterEach
  void stop() {
    store.close();
    served.close();
  }

  private void restart() throws Exception {
    served = Served.startAt(folder.resolve("store"), served.port());
  }

  private List<String> fill(int count) {
    var keys = IntStream.range(0, count).mapToObj("key%06d"::formatted).toList();
    var rows = Flowable.fromIterable(keys).map(key -> Row.of(key, "v".repeat(100)));
    table.put(rows).blockingForEach(Ack::orThrow);
    return keys;
  }

  @Test
  void a_scan_whose_server_dies_fails_after_rows_of_one_state() {
    var keys = fill(20_000);
    var scan = table.scan(Scan.all().batchBytes(4096)).map(Row::keyText).test(10);
    scan.awaitCount(10);
    served.kill();
    scan.request(Long.MAX_VALUE);
    scan.awaitDone(60, SECONDS).assertError(StoreUnavailableException.class);
    assertEquals(keys.subList(0, scan.values().size()), scan.values());
    assertTrue(scan.values().size() < keys.size());
  }

  @Test
  void a_stream_of_writes_whose_server_dies_fails_and_what_it_acknowledged_is_there()
      throws Exception {
    int acknowledged;
    var rows = Flowable.range(0, Integer.MAX_VALUE).map(i -> Row.of("key%09d".formatted(i), "v"));
    try (var other = Store.connect(served.address, ConnectOptions.defaults().tries(0))) {
      var batches = other.table("rows").batch(rows, BatchPolicy.defaults().inFlight(64));
      var acks = batches.test(2000);
      acks.awaitCount(2000);
      served.kill();
      acks.request(Long.MAX_VALUE);
      acks.awaitDone(60, SECONDS).assertError(StoreUnavailableException.class);
      acknowledged = acks.values().size();
    }
    restart();
    long written = table.count().blockingGet();
    assertTrue(written >= acknowledged, written + " of " + acknowledged);
    assertEquals("key000000000", table.scan().blockingFirst().keyText());
  }

  @Test
  void a_stream_of_writes_outlives_a_server_that_owes_it_no_answer() throws Exception {
    var rows = PublishProcessor.<Row>create();
    var acks = table.put(rows.onBackpressureBuffer()).test();
    rows.onNext(Row.of("a", "1"));
    acks.awaitCount(1);
    served.kill();
    restart();
    // Finds out that the connection was lost.
    table.get(bytes("a")).isEmpty().blockingGet();
    rows.onNext(Row.of("b", "2"));
    rows.onComplete();
    acks.awaitDone(60, SECONDS).assertComplete().assertValueCount(2);
  }

  @Test
  void what_was_never_sent_is_tried_again_be_it_a_write() throws Exception {
    served.kill();
    try (var other = Store.connect(served.address, PATIENT)) {
      var rows = other.table("rows");
      var put = rows.put(bytes("a"), bytes("1")).test();
      var acks = rows.put(Flowable.just(Row.of("b", "2"))).test();
      var get = rows.get(bytes("nobody")).test();
      var main = other.mainTable();
      var found = other.read(one -> one.get(main, bytes("nobody")).toFlowable()).test();
      restart();
      put.awaitDone(60, SECONDS).assertComplete();
      acks.awaitDone(60, SECONDS).assertComplete();
      assertTrue(acks.values().getFirst().outcome().isPresent());
      get.awaitDone(60, SECONDS).assertResult();
      found.awaitDone(60, SECONDS).assertResult();
    }
  }

  @Test
  void a_server_that_is_not_there_is_told_after_some_tries() {
    served.kill();
    try (var other = Store.connect(served.address, ConnectOptions.defaults().tries(1))) {
      var rows = other.table("rows");
      var thrown =
          assertThrows(
              StoreUnavailableException.class, () -> rows.get(bytes("a")).blockingGet());
      assertEquals("unavailable", thrown.code());
      rows.scan().test().awaitDone(60, SECONDS).assertError(StoreUnavailableException.class);
      rows.put(Flowable.just(Row.of("a", "1")))
          .test()
          .awaitDone(60, SECONDS)
          .assertError(StoreUnavailableException.class);
      rows.watch(Range.all())
          .test()
          .awaitDone(60, SECONDS)
          .assertError(StoreUnavailableException.class);
    }
  }

  @Test
  void a_watch_goes_on_where_it_was_when_the_server_comes_back() throws Exception {
    var watch = table.watch(Range.all()).map(change -> new String(change.key())).test();
    table.put(bytes("a"), bytes("1")).blockingAwait();
    watch.awaitCount(1);
    served.kill();
    restart();
    // Of another client, since this one's connection may not be known to be lost.
    try (var other = Store.connect(served.address, PATIENT)) {
      other.table("rows").put(bytes("b"), bytes("2")).blockingAwait();
      other.table("rows").put(bytes("c"), bytes("3")).blockingAwait();
    }
    watch.awaitCount(3).assertValues("a", "b", "c").assertNotComplete();
    watch.cancel();
  }

  /** Takes the place of a server, and closes connections before they say anything. */
  private void refuseConnections(int count) throws Exception {
    try (var nobody = new ServerSocket(served.port(), 10, InetAddress.getLoopbackAddress())) {
      nobody.setSoTimeout(60_000);
      for (int i = 0; i < count; i++) {
        nobody.accept().close();
      }
    }
  }

  @Test
  void watches_and_streams_of_writes_reconnect_for_a_time_and_not_a_few_times() throws Exception {
    var once = ConnectOptions.defaults().tries(1).reconnect(Duration.ofHours(1));
    try (var other = Store.connect(served.address, once)) {
      var rows = PublishProcessor.<Row>create();
      var watch = other.table("rows").watch(Range.all()).test();
      var acks = other.table("rows").put(rows.onBackpressureBuffer()).test();
      rows.onNext(Row.of("a", "1"));
      acks.awaitCount(1);
      watch.awaitCount(1);
      served.kill();
      refuseConnections(4);
      rows.onNext(Row.of("b", "2"));
      refuseConnections(4);
      restart();
      rows.onComplete();
      acks.awaitDone(60, SECONDS).assertComplete().assertValueCount(2);
      watch.awaitCount(2).assertValueCount(2).assertNotComplete();
      watch.cancel();
    }
  }

  @Test
  void watches_and_streams_of_writes_that_give_up_reconnecting_name_the_time() {
    assertEquals(Duration.ofSeconds(30), ConnectOptions.defaults().reconnect());
    var options = ConnectOptions.defaults().tries(1).reconnect(Duration.ofMillis(200));
    try (var other = Store.connect(served.address, options)) {
      var rows = other.table("rows");
      rows.put(bytes("a"), bytes("1")).blockingAwait();
      var watch = rows.watch(Range.all()).test();
      var items = PublishProcessor.<Row>create();
      var acks = rows.put(items.onBackpressureBuffer()).test();
      items.onNext(Row.of("a", "2"));
      acks.awaitCount(1);
      watch.awaitCount(1);
      served.kill();
      var givenUp = "; tried to reconnect for 0.2 s; ConnectOptions.reconnect sets the time";
      watch
          .awaitDone(60, SECONDS)
          .assertError(StoreUnavailableException.class)
          .assertError(thrown -> thrown.getMessage().endsWith(givenUp));
      // The stream of writes has lost its server, too, and nothing that has no answer.
      items.onNext(Row.of("b", "3"));
      acks.awaitDone(60, SECONDS)
          .assertError(StoreUnavailableException.class)
          .assertError(thrown -> thrown.getMessage().endsWith(givenUp));
    }
  }

  @Test
  void a_killed_server_is_told_in_one_line() {
    served.kill();
    try (var other = Store.connect(served.address, ConnectOptions.defaults().tries(0))) {
      var rows = other.table("rows");
      var thrown =
          assertThrows(StoreUnavailableException.class, () -> rows.get(bytes("a")).blockingGet());
      var message = thrown.getMessage();
      assertTrue(message.startsWith("could not connect: "), message);
      assertTrue(message.endsWith("; is the server running?"), message);
      assertEquals(1, message.lines().count(), message);
    }
  }

  @Test
  void a_read_transaction_sees_tables_that_the_server_opens_anew() throws Exception {
    var second = store.table("second");
    second.put(bytes("a"), bytes("1")).blockingAwait();
    fill(1);
    served.kill();
    restart();
    // Finds out that the connection was lost.
    table.get(bytes("a")).isEmpty().blockingGet();
    var counts =
        store.read(
            one ->
                Flowable.just(table, second)
                    .concatMapSingle(each -> one.scan(each, Scan.all()).count()));
    assertEquals(List.of(1L, 1L), counts.toList().blockingGet());
  }

  @Test
  void a_call_without_an_answer_ends_at_its_deadline() throws Exception {
    try (var silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        var other =
            Store.connect(
                "grpc://127.0.0.1:" + silent.getLocalPort(),
                ConnectOptions.defaults().deadline(Duration.ofMillis(50)))) {
      var thrown =
          assertThrows(
              StoreUnavailableException.class,
              () -> other.table("rows").get(bytes("a")).blockingGet());
      assertEquals("deadline", thrown.code());
      var put = other.mainTable().put(bytes("a"), bytes("1")).test().awaitDone(60, SECONDS);
      put.assertError(StoreUnavailableException.class);
    }
  }

  @Test
  void a_server_that_stops_lets_streams_go_on_and_takes_no_others() throws Exception {
    var keys = fill(20_000);
    var scan = table.scan(Scan.all().batchBytes(4096)).map(Row::keyText).test(10);
    scan.awaitCount(10);
    served.stop();
    try (var other = Store.connect(served.address, ConnectOptions.defaults().tries(0))) {
      // Either it still answers, or says that it stops, or is not reached: in the end it is not.
      Throwable thrown = null;
      while (thrown == null) {
        var get = other.mainTable().get(bytes("a")).ignoreElement();
        thrown = get.materialize().blockingGet().getError();
      }
      assertInstanceOf(StoreUnavailableException.class, thrown);
    }
    scan.request(Long.MAX_VALUE);
    scan.awaitDone(60, SECONDS).assertComplete();
    assertEquals(keys, scan.values());
    served.awaitEnd();
  }

  @Test
  void writes_that_were_accepted_are_answered_before_the_store_is_closed() throws Exception {
    var put = PublishProcessor.<Row>create();
    var acks = table.put(put.onBackpressureBuffer()).test();
    put.onNext(Row.of("a", "1"));
    acks.awaitCount(1);
    for (int i = 0; i < 100; i++) {
      put.onNext(Row.of("more" + i, "v"));
    }
    var single = table.put(bytes("b"), bytes("2")).test();
    store.close();
    single.awaitDone(60, SECONDS).assertComplete();
    acks.awaitDone(60, SECONDS).assertError(StoreClosedException.class);
    assertEquals(101, acks.values().size());
    try (var other = Store.connect(served.address, PATIENT)) {
      assertEquals(102, other.table("rows").count().blockingGet());
    }
  }
}
