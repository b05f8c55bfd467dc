package io.nuthatch.bench;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.nuthatch.rx.Parallel;
import io.nuthatch.rx.Row;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.Scan;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.FlowableSubscriber;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.Blackhole;
import org.reactivestreams.Subscription;

/** Full passes over all rows: each benchmark here reads all of them and consumes each. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(
    value = 1,
    jvmArgsAppend = {
      "--enable-native-access=ALL-UNNAMED",
      "--sun-misc-unsafe-memory-access=allow",
      "--add-opens=java.base/java.nio=ALL-UNNAMED",
      "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
      "-Xms2g",
      "-Xmx2g"
    })
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class Scans {

  private static final RowMapper<Byte> FIRST_BYTE = (key, value) -> value.get(JAVA_BYTE, 0);

  /** Consumes all rows, requests so many at a time, and waits for the end. */
  private static <T> void consume(Flowable<T> rows, Blackhole hole, long at) {
    var consumer = new Consumer<T>(hole, at);
    rows.subscribe(consumer);
    try {
      consumer.done.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A cursor of lmdbjava; each key and value is copied into an array. */
  @Benchmark
  public void lmdbjavaCopied(Rows rows, Blackhole hole) {
    try (var txn = rows.env.txnRead();
        var cursor = rows.dbi.openCursor(txn)) {
      for (boolean more = cursor.first(); more; more = cursor.next()) {
        hole.consume(new Row(bytes(cursor.key()), bytes(cursor.val())));
      }
    }
  }

  private static byte[] bytes(ByteBuffer buffer) {
    var bytes = new byte[buffer.remaining()];
    buffer.get(bytes);
    return bytes;
  }

  /** A cursor of lmdbjava; a byte is taken of each value where it lies. */
  @Benchmark
  public void lmdbjavaInPlace(Rows rows, Blackhole hole) {
    try (var txn = rows.env.txnRead();
        var cursor = rows.dbi.openCursor(txn)) {
      for (boolean more = cursor.first(); more; more = cursor.next()) {
        hole.consume(Byte.valueOf(cursor.val().get(0)));
      }
    }
  }

  /** A scan, all rows requested at once. */
  @Benchmark
  public void flowable(Rows rows, Blackhole hole) {
    consume(rows.table.scan(), hole, Long.MAX_VALUE);
  }

  /** A scan, 128 rows requested at a time. */
  @Benchmark
  public void flowableBy128(Rows rows, Blackhole hole) {
    consume(rows.table.scan(), hole, 128);
  }

  /** A scan with a mapper that takes a byte of each value where it lies. */
  @Benchmark
  public void flowableMapped(Rows rows, Blackhole hole) {
    consume(rows.table.scan(Scan.all(), FIRST_BYTE), hole, Long.MAX_VALUE);
  }

  /** Two threads, each row copied. */
  @Benchmark
  public void parallel2(Rows rows, Blackhole hole) {
    consume(rows.table.scanParallel(Scan.all(), Parallel.split(2)), hole, Long.MAX_VALUE);
  }

  /** Two threads with a mapper. */
  @Benchmark
  public void parallel2Mapped(Rows rows, Blackhole hole) {
    var mapped = rows.table.scanParallel(Scan.all(), Parallel.split(2), FIRST_BYTE);
    consume(mapped, hole, Long.MAX_VALUE);
  }

  /** Consumes rows, and requests more when it has received all that it requested. */
  private static final class Consumer<T> implements FlowableSubscriber<T> {
    private final Blackhole hole;
    private final long at;
    private long left;
    private Subscription subscription;
    private final CountDownLatch done = new CountDownLatch(1);

    Consumer(Blackhole hole, long at) {
      this.hole = hole;
      this.at = at;
      this.left = at;
    }

    @Override
    public void onSubscribe(Subscription upstream) {
      subscription = upstream;
      upstream.request(at);
    }

    @Override
    public void onNext(T item) {
      hole.consume(item);
      left--;
      if (left == 0) {
        left = at;
        subscription.request(at);
      }
    }

    @Override
    public void onError(Throwable thrown) {
      throw new IllegalStateException(thrown);
    }

    @Override
    public void onComplete() {
      done.countDown();
    }
  }
}
