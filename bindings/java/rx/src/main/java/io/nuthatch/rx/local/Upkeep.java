package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Kind;
import io.nuthatch.rx.LocalStore.Progress;
import io.nuthatch.rx.StoreStat;
import io.nuthatch.rx.flow.Signals;
import io.reactivex.rxjava3.core.BackpressureStrategy;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.FlowableEmitter;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.OptionalLong;

/** Statistics and maintenance of a whole store. */
final class Upkeep {

  private static final FunctionDescriptor PROGRESS =
      FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle ON_PROGRESS = progressHandle();

  private Upkeep() {}

  private static MethodHandle progressHandle() {
    try {
      var type =
          MethodType.methodType(
              void.class, FlowableEmitter.class, MemorySegment.class, long.class, long.class);
      return MethodHandles.lookup().findStatic(Upkeep.class, "onProgress", type);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  static Single<StoreStat> stat(OpenStore store) {
    return store.tableNames().map(names -> {
      store.check();
      var tables = new ArrayList<StoreStat.TableStat>();
      tables.add(tableStat((OpenTable) store.mainTable()));
      for (var name : names) {
        tables.add(tableStat((OpenTable) store.table(name)));
      }
      var scratch = Scratch.ofThread();
      var stat = scratch.take(Layouts.STAT.byteSize());
      Native.statOf(store.handle, stat, scratch);
      boolean keeps = number(stat, "keeps_changes") != 0;
      return new StoreStat(
          count(stat, "page_bytes"),
          count(stat, "map_bytes"),
          count(stat, "used_bytes"),
          count(stat, "file_bytes"),
          count(stat, "free_bytes"),
          count(stat, "transaction"),
          number(stat, "readers"),
          number(stat, "max_readers"),
          count(stat, "open_transactions"),
          count(stat, "sequence"),
          keeps ? OptionalLong.of(count(stat, "oldest_change")) : OptionalLong.empty(),
          tables);
    });
  }

  private static StoreStat.TableStat tableStat(OpenTable table) {
    long handle = table.handle();
    var scratch = Scratch.ofThread();
    var kind = scratch.take(8);
    Native.tableKind(handle, kind, scratch);
    var stat = scratch.take(Layouts.TABLE_STAT.byteSize());
    Native.tableStatOf(handle, stat, scratch);
    var layout = Layouts.TABLE_STAT;
    return new StoreStat.TableStat(
        table.name(),
        Kind.values()[kind.get(JAVA_INT, 0)],
        stat.get(JAVA_LONG, Layouts.at(layout, "entries")),
        stat.get(JAVA_INT, Layouts.at(layout, "depth")),
        stat.get(JAVA_LONG, Layouts.at(layout, "branch_pages")),
        stat.get(JAVA_LONG, Layouts.at(layout, "leaf_pages")),
        stat.get(JAVA_LONG, Layouts.at(layout, "overflow_pages")));
  }

  private static long count(MemorySegment stat, String field) {
    return stat.get(JAVA_LONG, Layouts.at(Layouts.STAT, field));
  }

  private static int number(MemorySegment stat, String field) {
    return stat.get(JAVA_INT, Layouts.at(Layouts.STAT, field));
  }

  static Completable backup(OpenStore store, Path folder, boolean compact) {
    return Completable.fromAction(
        () -> {
          store.check();
          var scratch = Scratch.ofThread();
          var path = scratch.copy(folder.toString().getBytes(StandardCharsets.UTF_8));
          Native.backup(store.handle, path, path.byteSize(), compact ? 1 : 0, scratch);
        });
  }

  static Completable keepChanges(OpenStore store, long maxChanges, long maxBytes) {
    return Completable.fromAction(
        () -> {
          store.check();
          Native.keepChanges(store.handle, maxChanges, maxBytes, Scratch.ofThread());
        });
  }

  static Completable sync(OpenStore store) {
    return Completable.fromAction(
        () -> {
          store.check();
          Native.sync(store.handle, Scratch.ofThread());
        });
  }

  static Single<Long> sweep(OpenStore store) {
    return Single.fromCallable(
        () -> {
          store.check();
          var scratch = Scratch.ofThread();
          var out = scratch.take(8);
          Native.sweep(store.handle, out, scratch);
          return out.get(JAVA_LONG, 0);
        });
  }

  static Flowable<Progress> verify(OpenStore store) {
    return Flowable.<Progress>create(
            emitter -> verify(store, emitter), BackpressureStrategy.LATEST)
        .subscribeOn(Schedulers.io());
  }

  private static void verify(OpenStore store, FlowableEmitter<Progress> emitter) {
    store.check();
    try (var arena = Arena.ofConfined()) {
      var bound = ON_PROGRESS.bindTo(emitter);
      var function = Linker.nativeLinker().upcallStub(bound, PROGRESS, arena);
      // Not the scratch of this thread: subscribers run during this call.
      var scratch = new Scratch();
      Native.verify(store.handle, function, MemorySegment.NULL, MemorySegment.NULL, scratch);
      emitter.onComplete();
    }
  }

  @SuppressWarnings("unused") // called by the library
  private static void onProgress(
      FlowableEmitter<Progress> emitter, MemorySegment user, long done, long all) {
    try {
      emitter.onNext(new Progress(done, all));
    } catch (Throwable thrown) {
      // No exception may propagate into the library.
      Signals.deliver(() -> emitter.tryOnError(thrown));
    }
  }
}
