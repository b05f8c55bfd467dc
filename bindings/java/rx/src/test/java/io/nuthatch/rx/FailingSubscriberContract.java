package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.FlowableSubscriber;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.core.SingleObserver;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.observers.BaseTestConsumer;
import io.reactivex.rxjava3.plugins.RxJavaPlugins;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.publisher.Flux;

/**
 * Subscribers that throw: what each of them and all others of the store receive. An {@link Error}
 * that RxJava considers fatal passes through its operators, as if the subscriber were not of
 * RxJava.
 */
abstract class FailingSubscriberContract extends StoreFixture {

  /** Runs code, and returns what went to the global error handler of RxJava. */
  private static List<Throwable> reported(Runnable code) {
    return reported(0, code);
  }

  /** Runs code, and waits until the global error handler of RxJava has received so many errors. */
  private static List<Throwable> reported(int count, Runnable code) {
    var reported = new CopyOnWriteArrayList<Throwable>();
    var expected = new CountDownLatch(count);
    RxJavaPlugins.setErrorHandler(
        thrown -> {
          reported.add(thrown);
          expected.countDown();
        });
    try {
      code.run();
      await(expected);
    } finally {
      RxJavaPlugins.setErrorHandler(null);
    }
    return reported;
  }

  private static final class Wanted extends LinkageError {
    private static final long serialVersionUID = 1L;
  }

  private static <T> T fail(Object unused) {
    throw new Wanted();
  }

  private static void assertFailed(BaseTestConsumer<?, ?> subscriber) {
    subscriber.awaitDone(60, SECONDS).assertError(Wanted.class);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertTrue(latch.await(60, SECONDS), latch.getCount() + " events are missing");
    } catch (InterruptedException interrupted) {
      throw new AssertionError(interrupted);
    }
  }

  private static Flowable<Row> rows() {
    return Flowable.range(0, 200).map(i -> Row.of("key" + i, "v"));
  }

  /** A subscriber that throws in {@code onNext} or {@code onSuccess}, and notes its signals. */
  private static final class Throwing<T> implements FlowableSubscriber<T>, SingleObserver<T> {

    final List<String> signals = new CopyOnWriteArrayList<>();
    final CountDownLatch failed = new CountDownLatch(1);
    private final boolean throwsInOnError;

    Throwing(boolean throwsInOnError) {
      this.throwsInOnError = throwsInOnError;
    }

    @Override
    public void onSubscribe(Subscription subscription) {
      subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onSubscribe(Disposable subscription) {}

    @Override
    public void onNext(T item) {
      signals.add("item");
      throw new IllegalStateException("of an item");
    }

    @Override
    public void onSuccess(T item) {
      onNext(item);
    }

    @Override
    public void onError(Throwable thrown) {
      signals.add("error " + thrown.getMessage());
      failed.countDown();
      if (throwsInOnError) {
        throw new IllegalStateException("of an error");
      }
    }

    @Override
    public void onComplete() {
      signals.add("end");
    }
  }

  @Test
  void an_error_thrown_by_a_subscriber_to_a_write_keeps_no_later_write_waiting() {
    var reported =
        reported(
            () -> {
              for (int i = 0; i < 3; i++) {
                var batch = new Batch().put(table, bytes("a"), bytes("1"));
                var failing = store.write(batch).map(written -> fail(written)).test();
                table.put(bytes("b"), bytes("2")).test().awaitDone(60, SECONDS).assertComplete();
                assertFailed(failing);
              }
            });
    assertEquals(List.of(), reported);
  }

  @Test
  void an_error_thrown_after_any_write_is_delivered_to_its_subscriber() {
    for (var write :
        List.<Single<?>>of(
            table.put(bytes("a"), bytes("1")).toSingleDefault(true),
            table.delete(bytes("a")).toSingleDefault(true),
            table.putIf(bytes("a"), bytes("1"), Condition.absent()),
            table.remove(bytes("a")),
            table.deleteRange(Range.all()),
            store.write(new Batch().put(table, bytes("a"), bytes("1"))))) {
      assertEquals(List.of(), reported(() -> assertFailed(write.map(w -> fail(w)).test())));
    }
  }

  @Test
  void an_error_thrown_by_one_stream_of_writes_is_delivered_to_it_and_ends_no_other_one() {
    var groups = BatchPolicy.defaults().groups(8, Duration.ZERO);
    var reported =
        reported(
            () -> {
              var single = table.put(rows()).map(ack -> fail(ack)).test();
              var grouped = table.batch(rows(), groups).map(ack -> fail(ack)).test();
              var other = table.put(rows()).test();
              other.awaitDone(60, SECONDS).assertComplete().assertValueCount(200);
              assertFailed(single);
              assertFailed(grouped);
            });
    assertEquals(List.of(), reported);
  }

  @Test
  void a_subscriber_that_throws_receives_its_exception_once_and_nothing_after_it() {
    var stream = new Throwing<Ack<Row>>(false);
    var single = new Throwing<Written>(false);
    var reported =
        reported(
            () -> {
              table.put(rows()).subscribe(stream);
              store.write(new Batch().put(table, bytes("a"), bytes("1"))).subscribe(single);
              await(stream.failed);
              await(single.failed);
              // All acknowledgements of the failed stream came before those of another.
              table.put(rows()).test().awaitDone(60, SECONDS).assertComplete();
            });
    assertEquals(List.of("item", "error of an item"), stream.signals);
    assertEquals(List.of("item", "error of an item"), single.signals);
    assertEquals(List.of(), reported);
  }

  @Test
  void what_cannot_be_delivered_to_a_subscriber_goes_to_the_handler_of_errors() {
    var stream = new Throwing<Ack<Row>>(true);
    var reported =
        reported(
            2,
            () -> {
              table.put(rows()).subscribe(stream);
              table.put(rows()).test().awaitDone(60, SECONDS).assertComplete();
            });
    assertEquals(List.of("item", "error of an item"), stream.signals);
    var texts = reported.stream().map(Throwable::toString).collect(Collectors.joining(", "));
    assertEquals(2, reported.size(), texts);
    assertTrue(texts.contains("of an item") && texts.contains("of an error"), texts);
  }

  @Test
  void what_a_subscriber_of_another_library_throws_goes_to_the_handler_of_errors() {
    fill("a");
    var reported =
        reported(
            2,
            () -> {
              // RxJava adapts subscribers of others; the adapter passes nothing on after that.
              Flux.from(table.put(rows())).subscribe(ack -> fail(ack));
              Flux.from(table.scan(Scan.all())).subscribe(row -> fail(row));
              table.put(rows()).test().awaitDone(60, SECONDS).assertComplete();
            });
    // RxJava says of what it reports that it could not be delivered.
    var causes = reported.stream().map(Throwable::getCause).toList();
    assertTrue(causes.stream().allMatch(Wanted.class::isInstance), reported.toString());
    assertEquals(2, reported.size(), reported.toString());
  }

  @Test
  void a_stream_of_writes_that_is_cancelled_between_acknowledgements_reports_nothing() {
    var reported =
        reported(
            () -> {
              table.put(rows()).take(1).test().awaitDone(60, SECONDS).assertComplete();
              table.put(rows()).test().awaitDone(60, SECONDS).assertComplete();
            });
    assertEquals(List.of(), reported);
  }

  @Test
  void an_error_thrown_at_the_end_of_a_stream_of_writes_is_delivered() {
    var reported =
        reported(() -> assertFailed(table.put(rows()).toList().map(acks -> fail(acks)).test()));
    assertEquals(List.of(), reported);
  }

  @Test
  void an_error_thrown_for_an_item_to_be_written_is_delivered() {
    // With one item in flight, later items are requested by the thread of acknowledgements.
    for (var policy :
        List.of(
            BatchPolicy.defaults().inFlight(1),
            BatchPolicy.defaults().groups(2, Duration.ZERO).inFlight(2))) {
      var reported =
          reported(
              () -> {
                var written =
                    store.writeEach(
                        Flowable.range(0, 100),
                        i -> i == 50 ? fail(i) : new Batch().put(table, bytes("a" + i), bytes("")),
                        policy);
                assertFailed(written.test());
                table.put(bytes("b"), bytes("2")).test().awaitDone(60, SECONDS).assertComplete();
              });
      assertEquals(List.of(), reported);
    }
  }

  @Test
  void an_error_thrown_by_the_reads_of_a_read_transaction_is_delivered() {
    var reported =
        reported(() -> assertFailed(store.read(transaction -> fail(transaction)).test()));
    assertEquals(List.of(), reported);
  }

  @Test
  void an_error_thrown_by_a_reader_of_a_stream_ends_that_stream() {
    fill("a", "b", "c");
    var reported =
        reported(
            () -> {
              var watch = table.watch(Range.all()).map(change -> fail(change)).test();
              fill("d");
              assertFailed(watch);
              assertFailed(table.scan().map(row -> fail(row)).test());
              assertFailed(table.scan(Scan.all(), (key, value) -> fail(key)).test());
              var split = Parallel.split(2);
              assertFailed(table.scanParallel(Scan.all(), split, (key, v) -> fail(key)).test());
              assertFailed(table.cursor((c, emit) -> fail(c)).test());
            });
    assertEquals(List.of(), reported);
    assertEquals("a b c d", keys(table.scan()));
  }

  @Test
  void an_error_thrown_while_a_store_is_closed_keeps_it_from_nothing() {
    reported(
        () -> {
          var failing =
              table.watch(Range.all()).doOnError(FailingSubscriberContract::fail).test();
          var other = table.watch(Range.all()).test();
          store.close();
          other.awaitDone(60, SECONDS).assertError(StoreClosedException.class);
          failing.cancel();
        });
  }
}
