package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;

import io.reactivex.rxjava3.core.Flowable;
import java.nio.file.Path;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** An empty store for each test. A subclass for each kind of store starts it. */
abstract class StoreFixture {

  @TempDir Path folder;
  Store store;
  Table table;

  /** Starts an empty store that keeps the last 10,000 changes. */
  abstract Store start(Path folder) throws Exception;

  /** Stops what {@link #start} started besides the store. */
  abstract void stop() throws Exception;

  @BeforeEach
  void startStore() throws Exception {
    store = start(folder.resolve("store"));
    table = store.table("rows");
  }

  @AfterEach
  void stopStore() throws Exception {
    store.close();
    stop();
  }

  void fill(String... keys) {
    var batch = new Batch();
    for (var key : keys) {
      batch.put(table, bytes(key), bytes("value of " + key));
    }
    store.write(batch).blockingGet();
  }

  String keys(Flowable<Row> rows) {
    return rows.map(Row::keyText).collect(Collectors.joining(" ")).blockingGet();
  }
}
