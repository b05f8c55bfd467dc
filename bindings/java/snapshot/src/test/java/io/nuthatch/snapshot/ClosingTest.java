package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Closing while other threads read gives them an error, and never ends the process. */
class ClosingTest {

  private static final Path FILE = Vectors.ROOT.resolve("v1/types.nut");
  private static final Path SET = Vectors.ROOT.resolve("v1/set-3.nut");
  private static final byte[] LIST = "list of i64".getBytes();

  private static final List<Consumer<Snapshot>> READS =
      List.of(
          snapshot -> snapshot.get("string"),
          snapshot -> snapshot.getString("string"),
          snapshot -> snapshot.get("no such key"),
          snapshot -> snapshot.find(LIST, new ValueView()),
          snapshot -> snapshot.getMany(new byte[][] {LIST}),
          snapshot -> snapshot.iterator().forEachRemaining(entry -> {}),
          Snapshot::verify);

  @Test
  void every_kind_of_read_of_a_closed_snapshot_fails() {
    for (var path : List.of(FILE, SET)) {
      var snapshot = Snapshot.open(path);
      snapshot.close();
      for (var read : READS) {
        assertThrows(SnapshotClosedException.class, () -> read.accept(snapshot));
      }
    }
    var closed = Snapshot.open(Vectors.ROOT.resolve("v1/metadata.nut"));
    closed.close();
    assertThrows(SnapshotClosedException.class, closed::metadata);
  }

  @Test
  void a_snapshot_can_be_closed_twice() {
    var snapshot = Snapshot.open(FILE);
    snapshot.close();
    snapshot.close();
    assertThrows(SnapshotClosedException.class, () -> snapshot.get("string"));
  }

  @Test
  void views_of_a_closed_snapshot_fail() {
    var snapshot = Snapshot.open(FILE);
    var view = new ValueView();
    assertTrue(snapshot.find(LIST, view));
    var segment = view.segment();
    var buffer = snapshot.getLongBuffer(LIST);
    var cursor = snapshot.cursor();
    assertTrue(cursor.next());
    snapshot.close();
    assertThrows(SnapshotClosedException.class, view::asLongs);
    assertThrows(SnapshotClosedException.class, () -> view.copyTo(new byte[8], 0));
    assertThrows(SnapshotClosedException.class, cursor::key);
    assertThrows(SnapshotClosedException.class, cursor::next);
    assertThrows(IllegalStateException.class, () -> segment.get(ValueLayout.JAVA_BYTE, 0));
    assertThrows(IllegalStateException.class, () -> buffer.get(0));
  }

  @Test
  void lookups_during_a_close_return_the_value_or_fail() throws Exception {
    try (var threads = Executors.newFixedThreadPool(READS.size())) {
      for (int round = 0; round < 20; round++) {
        var snapshot = Snapshot.open(round % 2 == 0 ? FILE : SET);
        var started = new CountDownLatch(READS.size());
        var results = new ArrayList<Future<Throwable>>();
        for (var read : READS) {
          results.add(threads.submit(() -> readUntilClosed(snapshot, read, started)));
        }
        started.await();
        snapshot.close();
        for (var result : results) {
          assertInstanceOf(SnapshotClosedException.class, result.get());
        }
      }
    }
  }

  private static Throwable readUntilClosed(
      Snapshot snapshot, Consumer<Snapshot> read, CountDownLatch started) {
    try {
      while (true) {
        read.accept(snapshot);
        started.countDown();
      }
    } catch (Throwable e) {
      return e;
    }
  }

  @Test
  void compressed_values_can_be_read_while_their_snapshot_is_closed() throws Exception {
    try (var threads = Executors.newFixedThreadPool(3)) {
      for (int round = 0; round < 20; round++) {
        var snapshot = Snapshot.open(Vectors.ROOT.resolve("v1/zstd-dictionary.nut"));
        var started = new CountDownLatch(3);
        Consumer<Snapshot> read = all -> all.forEach(entry -> {});
        Callable<Throwable> reader = () -> readUntilClosed(snapshot, read, started);
        var running =
            List.of(threads.submit(reader), threads.submit(reader), threads.submit(reader));
        started.await();
        snapshot.close();
        for (var result : running) {
          assertInstanceOf(SnapshotClosedException.class, result.get());
        }
      }
    }
  }

  @Test
  void a_system_call_that_uses_a_buffer_delays_the_close() throws Exception {
    var snapshot = Snapshot.open(Vectors.ROOT.resolve("v1/long-values.nut"));
    var cursor = snapshot.cursor();
    while (cursor.next() && cursor.value().byteLength() < 10_000) {}
    var bytes = cursor.value().segment().asByteBuffer();
    var pipe = Pipe.open();
    try (var threads = Executors.newSingleThreadExecutor();
        var source = pipe.source()) {
      var writer = threads.submit(() -> writeUntilClosed(pipe, bytes));
      var drain = ByteBuffer.allocate(1 << 16);
      source.read(drain);
      snapshot.close();
      while (source.read(drain.clear()) >= 0) {}
      assertInstanceOf(IllegalStateException.class, writer.get());
    }
  }

  /** Writes a buffer, which blocks while the pipe is full, until the buffer is closed. */
  private static Throwable writeUntilClosed(Pipe pipe, ByteBuffer bytes) throws Exception {
    try (var sink = pipe.sink()) {
      while (true) {
        sink.write(bytes.duplicate());
      }
    } catch (IllegalStateException e) {
      return e;
    }
  }

  @Test
  void statistics_and_size_of_a_closed_snapshot_stay_available() {
    var snapshot = Snapshot.open(FILE);
    var stats = snapshot.stats();
    snapshot.close();
    assertEquals(stats, snapshot.stats());
    assertEquals(stats.entries(), snapshot.size());
  }

  @Test
  void a_copied_segment_of_a_compressed_value_stays_valid() {
    var snapshot = Snapshot.open(Vectors.ROOT.resolve("v1/zstd.nut"));
    var cursor = snapshot.cursor();
    while (cursor.next() && !cursor.value().isCompressed()) {}
    var segment = cursor.value().segment();
    snapshot.close();
    assertTrue(segment.byteSize() > 0);
    assertTrue(segment.isReadOnly());
    assertTrue(segment.toArray(ValueLayout.JAVA_BYTE).length > 0);
  }
}
