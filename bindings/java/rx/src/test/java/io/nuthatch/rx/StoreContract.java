package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.reactivex.rxjava3.core.Flowable;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What holds of every store, wherever it is. A class for each kind of store runs all of it. */
abstract class StoreContract {

  @TempDir Path folder;
  Store store;
  Table table;

  /** A store that is empty and keeps the last 10,000 changes; {@link #stop} ends it. */
  abstract Store start(Path folder) throws Exception;

  /** Ends what {@link #start} began besides the store. */
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
}
