package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Releases of old files, events, and threads of a watch; `watch.json` has the swaps. */
class WatchTest {

  private static final WatchOptions BY_HAND = WatchOptions.defaults().interval(Duration.ZERO);

  @TempDir Path folder;
  private Path path;

  /** Number of sets that {@link #release} has published. */
  private int releases;

  @BeforeEach
  void publishFirst() throws IOException {
    path = folder.resolve("watched.nut");
    publish("one");
  }

  private void publish(String name) throws IOException {
    var copy = folder.resolve("copy.nut");
    Files.copy(Vectors.ROOT.resolve("v1/" + name + ".nut"), copy);
    Files.move(copy, path, StandardCopyOption.ATOMIC_MOVE);
  }

  private static boolean isOpen(Snapshot snapshot) {
    try {
      snapshot.get("any");
      return true;
    } catch (SnapshotClosedException e) {
      return false;
    }
  }

  @Test
  void a_path_at_which_a_set_and_a_file_replace_each_other_opens_every_time() throws Exception {
    Vectors.copyShards(folder);
    var isDone = new AtomicBoolean();
    try (var executor = Executors.newSingleThreadExecutor()) {
      var publisher =
          executor.submit(
              () -> {
                while (!isDone.get()) {
                  publish("set-3");
                  publish("one");
                }
                return null;
              });
      try {
        for (int i = 0; i < 3000; i++) {
          Snapshot.open(path).close();
        }
      } finally {
        isDone.set(true);
      }
      publisher.get();
    }
  }

  /** Publishes a set in a new folder, switches the link at the path to it, returns the folder. */
  private Path release(String set) throws IOException {
    var release = Files.createDirectories(folder.resolve("releases/" + releases++));
    var manifest = release.resolve("a.nut");
    Files.copy(Vectors.ROOT.resolve("v1/" + set + ".nut"), manifest);
    for (var shard : Manifest.read(manifest).shards()) {
      var name = shard.fileName();
      Files.copy(Vectors.ROOT.resolve("v1/" + name), release.resolve(name));
    }
    var link = folder.resolve("link.nut");
    Files.createSymbolicLink(link, folder.relativize(manifest));
    Files.move(link, path, StandardCopyOption.ATOMIC_MOVE);
    return release;
  }

  private static void delete(Path release) throws IOException {
    try (var files = Files.list(release)) {
      for (var file : files.toList()) {
        Files.delete(file);
      }
    }
  }

  @Test
  void a_watch_of_a_link_switches_between_sets_in_two_folders() throws IOException {
    release("set-3");
    try (var watch = Watch.open(path, BY_HAND);
        var reader = watch.reader()) {
      assertEquals(3, reader.current().stats().shards());
      release("set-7");
      assertTrue(watch.refresh());
      assertFalse(watch.refresh());
      assertEquals(7, reader.current().stats().shards());
      assertEquals(path, reader.current().path());
      release("set-3");
      assertTrue(watch.refresh());
      assertEquals(3, reader.current().stats().shards());
      reader.current().verify();
    }
  }

  @Test
  void a_link_that_is_switched_and_whose_old_set_is_removed_opens_every_time() throws Exception {
    var first = release("set-3");
    var isDone = new AtomicBoolean();
    try (var executor = Executors.newSingleThreadExecutor()) {
      var publisher =
          executor.submit(
              () -> {
                var old = first;
                while (!isDone.get()) {
                  // Every second set has the same manifest as the one that it replaces.
                  var release = release(releases % 4 < 2 ? "set-3" : "set-7");
                  delete(old);
                  old = release;
                }
                return null;
              });
      try {
        for (int i = 0; i < 1000; i++) {
          Snapshot.open(path).close();
        }
      } finally {
        isDone.set(true);
      }
      publisher.get();
    }
  }

  @Test
  void an_error_of_the_virtual_machine_does_not_end_the_polls() throws IOException {
    var failure = new AtomicReference<Error>();
    var follower =
        new Follower(
            path,
            BY_HAND,
            (file, options) -> {
              if (failure.get() != null) {
                throw failure.get();
              }
              return Snapshot.open(file, options);
            });
    publish("types");
    failure.set(new OutOfMemoryError("Java heap space"));
    follower.pollInBackground();
    var error = follower.status().error().orElseThrow();
    assertEquals("io", error.code());
    assertTrue(error.getMessage().contains("Java heap space"), error.getMessage());
    failure.set(null);
    follower.pollInBackground();
    assertEquals(1, follower.status().switched());
    assertTrue(follower.status().error().isEmpty());
    follower.generations.close();
  }

  @Test
  void an_old_file_is_unmapped_after_its_last_reader_has_moved_on() throws IOException {
    try (var watch = Watch.open(path, BY_HAND)) {
      var first = watch.reader();
      var second = watch.reader();
      var old = first.current();
      assertSame(old, second.current());
      publish("types");
      assertTrue(watch.refresh());
      assertFalse(watch.refresh());
      assertTrue(isOpen(old));
      assertNotSame(old, first.current());
      watch.refresh();
      assertTrue(isOpen(old), "the other reader has not moved on");
      second.close();
      assertFalse(isOpen(old));
      assertThrows(SnapshotClosedException.class, second::current);
      assertTrue(isOpen(first.current()));
    }
  }

  @Test
  void a_file_that_is_too_large_to_copy_is_rejected_and_the_watch_continues() throws IOException {
    var overcommit = Path.of("/proc/sys/vm/overcommit_memory");
    assumeFalse(
        Files.exists(overcommit) && Files.readString(overcommit).strip().equals("1"),
        "the system would provide more memory than it has");
    var copied = OpenOptions.defaults().residency(Residency.COPIED);
    try (var watch = Watch.open(path, BY_HAND.open(copied));
        var reader = watch.reader()) {
      var sparse = folder.resolve("sparse.nut");
      try (var file = new RandomAccessFile(sparse.toFile(), "rw")) {
        file.setLength(1L << 43);
      }
      Files.move(sparse, path, StandardCopyOption.ATOMIC_MOVE);
      assertFalse(watch.refresh());
      var error = watch.status().error().orElseThrow();
      assertEquals("io", error.code());
      assertTrue(error.getMessage().contains("out of memory"), error.getMessage());
      publish("types");
      assertTrue(watch.refresh());
      assertEquals("a nuthatch", reader.current().getString("string"));
    }
  }

  @Test
  void closing_the_watch_closes_all_snapshots() throws IOException {
    var watch = Watch.open(path, BY_HAND);
    var old = watch.reader().current();
    publish("types");
    watch.refresh();
    var reader = watch.reader();
    watch.close();
    watch.close();
    assertFalse(isOpen(old));
    assertFalse(isOpen(reader.current()));
    assertThrows(SnapshotClosedException.class, watch::refresh);
  }

  @Test
  void a_bad_first_file_is_an_error() throws IOException {
    Files.writeString(path, "damaged");
    var e = assertThrows(SnapshotException.class, () -> Watch.open(path));
    assertEquals("not-a-snapshot", e.code());
  }

  @Test
  void the_thread_of_a_watch_switches_and_reports_each_event_once() throws Exception {
    var events = new LinkedBlockingQueue<WatchEvent>();
    var options = WatchOptions.defaults().interval(Duration.ofMillis(1)).report(events::add);
    try (var watch = Watch.open(path, options);
        var reader = watch.reader()) {
      publish("types");
      assertInstanceOf(WatchEvent.Switched.class, next(events));
      assertEquals(37, reader.current().size());
      // A write in place would be two changes: the thread may see the empty file.
      var damaged = Files.writeString(path.resolveSibling("damaged"), "damaged");
      Files.move(damaged, path, StandardCopyOption.ATOMIC_MOVE);
      var rejected = assertInstanceOf(WatchEvent.Rejected.class, next(events));
      assertEquals("not-a-snapshot", rejected.error().code());
      assertEquals(37, reader.current().size());
      publish("entries-14");
      assertInstanceOf(WatchEvent.Switched.class, next(events));
      assertEquals(14, reader.current().size());
      assertEquals(2, watch.status().switched());
      assertTrue(watch.status().error().isEmpty());
    }
  }

  private static WatchEvent next(LinkedBlockingQueue<WatchEvent> events) throws Exception {
    var event = events.poll(2, TimeUnit.MINUTES);
    assertTrue(event != null, "the watch calls back");
    return event;
  }

  @Test
  void a_callback_that_throws_is_recorded_and_may_refresh_and_close() throws Exception {
    var watch = new AtomicReference<Watch>();
    var events = new LinkedBlockingQueue<WatchEvent>();
    var failure = new IllegalArgumentException("a callback of the test");
    var options =
        BY_HAND.report(
            event -> {
              events.add(event);
              assertFalse(watch.get().refresh());
              if (events.size() == 2) {
                watch.get().close();
              }
              throw failure;
            });
    watch.set(Watch.open(path, options));
    publish("types");
    assertTrue(watch.get().refresh());
    assertSame(failure, watch.get().status().callbackError().orElseThrow());
    publish("entries-14");
    assertTrue(watch.get().refresh());
    assertEquals(2, events.size());
    assertThrows(SnapshotClosedException.class, () -> watch.get().refresh());
  }

  @Test
  void a_missing_file_is_retried_with_back_off_and_damage_is_not() throws IOException {
    var follower = new Follower(path, BY_HAND);
    Files.delete(path);
    assertFalse(follower.poll(false));
    assertFalse(follower.poll(false));
    assertEquals(1, follower.status().rejected());
    publish("types");
    assertTrue(follower.poll(false), "another file is opened at once");
    Files.writeString(path, "damaged");
    for (int i = 0; i < 300; i++) {
      assertFalse(follower.poll(false));
    }
    assertEquals(2, follower.status().rejected());
    publish("types");
    assertTrue(follower.poll(false));
    assertEquals(2, follower.status().switched());
    follower.generations.close();
  }

  @Test
  void readers_of_many_threads_never_see_a_closed_file() throws Exception {
    var isDone = new AtomicBoolean();
    try (var watch = Watch.open(path, WatchOptions.defaults().interval(Duration.ofMillis(1)));
        var threads = Executors.newFixedThreadPool(3)) {
      var readers =
          java.util.stream.Stream.generate(() -> threads.submit(() -> read(watch, isDone)))
              .limit(3)
              .toList();
      for (int i = 0; i < 100; i++) {
        publish(i % 2 == 0 ? "types" : "one");
        watch.refresh();
      }
      isDone.set(true);
      for (var reader : readers) {
        assertTrue(reader.get() > 0);
      }
      assertTrue(watch.status().switched() >= 50);
    }
  }

  private static long read(Watch watch, AtomicBoolean isDone) {
    long lookups = 0;
    try (var reader = watch.reader()) {
      do {
        reader.current().get("string");
        lookups++;
      } while (!isDone.get());
    }
    return lookups;
  }
}
