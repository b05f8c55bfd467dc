package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Ack;
import io.nuthatch.rx.Batch;
import io.nuthatch.rx.BatchPolicy;
import io.nuthatch.rx.Change;
import io.nuthatch.rx.Kind;
import io.nuthatch.rx.LocalStore;
import io.nuthatch.rx.ReadTransaction;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.StoreOptions;
import io.nuthatch.rx.StoreStat;
import io.nuthatch.rx.Table;
import io.nuthatch.rx.Watch;
import io.nuthatch.rx.Written;
import io.nuthatch.rx.flow.AckedWrites;
import io.nuthatch.rx.flow.Signals;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.functions.Function;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.reactivestreams.Publisher;

/** An open local store. */
final class OpenStore implements LocalStore {

  final long handle;
  /** Streams in progress, which fail when the store is closed. */
  final Set<Running> running = ConcurrentHashMap.newKeySet();

  /** Scans, read transactions and watches that the library has open. */
  final OpenHandles handles = new OpenHandles();

  /** Maximum time that closing waits for threads that are reading rows. */
  private static final long LAST_ROWS_MS = 1000;

  private final Path folder;
  private final Writer writer;
  private final OpenTable main;
  private volatile boolean isClosed;

  OpenStore(Path folder, StoreOptions options) {
    this.folder = folder;
    this.handle = open(folder, options);
    this.writer = new Writer(this, options);
    this.main = new OpenTable(this, "", Optional.empty());
  }

  private static long open(Path folder, StoreOptions options) {
    var scratch = Scratch.ofThread();
    var path = scratch.copy(folder.toString().getBytes(StandardCharsets.UTF_8));
    var struct = scratch.zeros(Layouts.OPTIONS.byteSize());
    write(options, struct);
    var out = scratch.take(8);
    Native.open(path, path.byteSize(), struct, out, scratch);
    return out.get(JAVA_LONG, 0);
  }

  /** Writes options to the struct of the header, which must be zero. */
  static void write(StoreOptions options, MemorySegment struct) {
    int[] small = {
      options.create() ? 1 : 0,
      options.readOnly() ? 1 : 0,
      options.durability().ordinal(),
      options.tables(),
      options.readers(),
      Math.clamp(options.growthPatience().toMillis(), 1, Integer.MAX_VALUE),
    };
    for (int i = 0; i < small.length; i++) {
      struct.setAtIndex(JAVA_INT, i, small[i]);
    }
    struct.set(JAVA_LONG, 24, options.reserveBytes());
    struct.set(JAVA_LONG, 32, options.limitBytes().orElse(0));
    struct.set(JAVA_INT, 40, options.allowNetworkFilesystem() ? 1 : 0);
  }

  @Override
  public Path folder() {
    return folder;
  }

  @Override
  public Table table(String name) {
    return name.isEmpty() ? main : new OpenTable(this, name, Optional.empty());
  }

  @Override
  public Table table(String name, Kind kind) {
    return new OpenTable(this, name, Optional.of(kind));
  }

  @Override
  public Table mainTable() {
    return main;
  }

  /** Throws if the store is closed: its handle is not valid then. */
  void check() {
    if (isClosed) {
      throw Failures.closed();
    }
  }

  boolean isClosed() {
    return isClosed;
  }

  /** Returns the handle of a table of this store. */
  long tableHandle(Table table) {
    if (table instanceof OpenTable open && open.store == this) {
      return open.handle();
    }
    throw StoreException.of("table", "expected a table of this store, found one of another");
  }

  @Override
  public Single<List<String>> tableNames() {
    return Single.fromCallable(
        () -> {
          check();
          long room = 4096;
          while (true) {
            var scratch = Scratch.ofThread();
            var names = scratch.take(room);
            var len = scratch.take(8);
            Native.tableNames(handle, names, room, len, scratch);
            long needed = len.get(JAVA_LONG, 0);
            if (needed <= room) {
              var bytes = names.asSlice(0, needed).toArray(JAVA_BYTE);
              var text = new String(bytes, StandardCharsets.UTF_8);
              return text.isEmpty() ? List.<String>of() : List.of(text.split("\0"));
            }
            room = needed;
          }
        });
  }

  @Override
  public Single<Written> write(Batch batch) {
    return Signals.guard(writer.write(batch));
  }

  @Override
  public <T> Flowable<Ack<T>> writeEach(
      Publisher<T> items, Function<? super T, Batch> batchOf, BatchPolicy policy) {
    return Signals.guard(AckedWrites.of(items, batchOf, policy, writer::write));
  }

  @Override
  public <T> Flowable<T> read(
      Function<? super ReadTransaction, ? extends Publisher<? extends T>> reads) {
    return Flowable.using(
        () -> new OpenReadTransaction(this),
        one -> Signals.caught(() -> reads.apply(one)),
        OpenReadTransaction::close);
  }

  @Override
  public Flowable<Change> watch(Watch watch) {
    return Watching.of(this, watch);
  }

  @Override
  public Single<StoreStat> stat() {
    return Upkeep.stat(this);
  }

  @Override
  public Completable backup(Path target, boolean compact) {
    return Upkeep.backup(this, target, compact);
  }

  @Override
  public Completable keepChanges(long maxChanges, long maxBytes) {
    if (maxChanges <= 0) {
      return Completable.error(
          StoreException.of("options", "maxChanges: expected 1 or more, found " + maxChanges));
    }
    return Upkeep.keepChanges(this, maxChanges, maxBytes);
  }

  @Override
  public Completable keepNoChanges() {
    return Upkeep.keepChanges(this, 0, 0);
  }

  @Override
  public Completable sync() {
    return Upkeep.sync(this);
  }

  @Override
  public Single<Long> sweep() {
    return Upkeep.sweep(this);
  }

  @Override
  public Flowable<Progress> verify() {
    return Upkeep.verify(this);
  }

  @Override
  public void close() {
    synchronized (this) {
      if (isClosed) {
        return;
      }
      isClosed = true;
    }
    // Accepted writes are committed and acknowledged before the store is closed.
    try {
      writer.finish();
    } finally {
      for (var each : running) {
        Signals.deliver(() -> each.fail(Failures.closed()));
      }
      handles.awaitNone(LAST_ROWS_MS);
      Native.close(handle, Scratch.ofThread());
    }
  }
}
