package io.nuthatch.bench;

import io.nuthatch.snapshot.Snapshot;
import io.nuthatch.snapshot.ValueView;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Lookups in the snapshot of {@link Lookups}, of all keys or of a few that stay in the cache of the
 * processor. With {@code -prof gc}, it shows that {@code find} allocates nothing.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class SnapshotGets {

  private static final int BATCH = 1_000;
  private static final int BATCHES = 1_000;

  /** The path of the snapshot. */
  @Param("lookups.nut")
  public String path;

  /** Number of different keys. */
  @Param({"1000", "1000000"})
  public int keys;

  private Snapshot snapshot;
  private final byte[][][] batches = new byte[BATCHES][BATCH][];
  private byte[][] batch;
  private int next;
  private final ValueView view = new ValueView();
  private final ValueView[] views = new ValueView[BATCH];

  /** Opens the snapshot. */
  @Setup(Level.Trial)
  public void open() {
    snapshot = Snapshot.open(Path.of(path));
    Arrays.setAll(views, i -> new ValueView());
    var random = new Random(42);
    for (var some : batches) {
      Arrays.setAll(some, i -> ("key_" + random.nextInt(keys)).getBytes(StandardCharsets.UTF_8));
    }
  }

  /** Chooses the keys of a call. */
  @Setup(Level.Invocation)
  public void chooseKeys() {
    batch = batches[next++ % BATCHES];
  }

  /** Unmaps the snapshot. */
  @TearDown(Level.Trial)
  public void close() {
    snapshot.close();
  }

  /** Finds values one by one. */
  @Benchmark
  @OperationsPerInvocation(BATCH)
  public long find() {
    long length = 0;
    for (var key : batch) {
      length += snapshot.find(key, view) ? view.byteLength() : 0;
    }
    return length;
  }

  /** Reads strings one by one. */
  @Benchmark
  @OperationsPerInvocation(BATCH)
  public long getString() {
    long length = 0;
    for (var key : batch) {
      length += snapshot.getString(key).length();
    }
    return length;
  }

  /** Finds the values of a batch. */
  @Benchmark
  @OperationsPerInvocation(BATCH)
  public ValueView[] findMany() {
    snapshot.findMany(batch, views);
    return views;
  }
}
