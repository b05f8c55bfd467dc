package io.nuthatch.rx.remote;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.nuthatch.rx.Batch;
import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.Served;
import io.nuthatch.rx.Store;
import io.nuthatch.rx.StoreClosedException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Batches and their acknowledgements in one call. */
class BatchStreamTest {

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void the_failure_of_a_closed_store_follows_the_acknowledgement_that_is_being_delivered(
      @TempDir Path folder) throws Exception {
    try (var served = Served.start(folder.resolve("store"));
        var store = Store.connect(served.address, ConnectOptions.defaults())) {
      var stream = new BatchStream((RemoteStore) store);
      var hasFailed = new AtomicBoolean();
      var closed = stream.closed().doOnError(any -> hasFailed.set(true)).test();
      var failsTooEarly = new AtomicBoolean();
      var batch = new Batch().put(store.mainTable(), bytes("key"), bytes("value"));
      var written =
          stream
              .write(batch)
              .doOnSuccess(
                  any -> {
                    var closing = new Thread(store::close);
                    closing.start();
                    closing.join();
                    failsTooEarly.set(hasFailed.get());
                  })
              .test();
      written.awaitDone(60, SECONDS).assertComplete();
      closed.awaitDone(60, SECONDS).assertError(StoreClosedException.class);
      assertFalse(failsTooEarly.get());
    }
  }
}
