package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.reactivex.rxjava3.core.Flowable;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the server sends, and when it stops. */
class RemoteFlowTest {

  private static final long ROWS = 400;
  private static final int ROW_BYTES = 64 << 10;

  @TempDir Path folder;

  @Test
  void a_server_sends_little_more_than_is_asked_for() throws Exception {
    try (var served = Served.start(folder.resolve("store"));
        var relay = new Relay(served.port());
        var store = Store.connect(relay.address())) {
      var table = store.table("rows");
      var rows =
          Flowable.rangeLong(0, ROWS)
              .map(i -> new Row(bytes("key%06d".formatted(i)), new byte[ROW_BYTES]));
      table.put(rows).blockingForEach(Ack::orThrow);

      long before = relay.answered.get();
      var scan = table.scan().test(1).awaitCount(1);
      // The server has had as many chances to send more.
      for (int i = 0; i < 200; i++) {
        table.get(bytes("nobody")).isEmpty().blockingGet();
      }
      long sent = relay.answered.get() - before;
      assertTrue(sent < ROWS * ROW_BYTES / 4, sent + " bytes for one row");

      scan.request(ROWS);
      scan.awaitDone(60, SECONDS).assertValueCount((int) ROWS).assertComplete();
      assertTrue(relay.answered.get() - before > ROWS * ROW_BYTES);
    }
  }

  @Test
  void a_scan_that_is_cancelled_ends_on_the_server() throws Exception {
    try (var served = Served.start(folder.resolve("store"));
        var store = Store.connect(served.address)) {
      var table = store.table("rows");
      var rows =
          Flowable.rangeLong(0, ROWS)
              .map(i -> new Row(bytes("key%06d".formatted(i)), new byte[ROW_BYTES]));
      table.put(rows).blockingForEach(Ack::orThrow);
      var scan = table.scan().test(1).awaitCount(1);
      assertEquals(1, store.stat().blockingGet().openTransactions());
      scan.cancel();
      // It would stay open for seconds more if the server were not told.
      while (store.stat().blockingGet().openTransactions() > 0) {
        Thread.onSpinWait();
      }
    }
  }
}
