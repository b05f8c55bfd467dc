package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.StoreException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.TreeMap;

/**
 * The functions of {@code nuthatch.h}. Each method has the name of its function without {@code
 * nuthatch_store_}, and throws the function's error as an exception.
 */
final class Native {

  /** The called functions, by their names in the header; a test compares them. */
  static final Map<String, FunctionDescriptor> SIGNATURES = new TreeMap<>();

  private static final Linker LINKER = Linker.nativeLinker();
  private static final SymbolLookup LIBRARY = NativeLibrary.load();
  private static final MethodHandle CODE_NAME =
      link("nuthatch_code_name", FunctionDescriptor.of(ADDRESS, JAVA_INT));
  private static final MethodHandle OPEN =
      function("open", ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle CLOSE = function("close", JAVA_LONG, ADDRESS);
  private static final MethodHandle OPEN_TABLE =
      function("open_table", JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_INT, ADDRESS, ADDRESS);
  private static final MethodHandle TABLE_KIND =
      function("table_kind", JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle TABLE_NAMES =
      function("table_names", JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle GET =
      function("get", JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle COUNT = function("count", JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle OPEN_READ_TRANSACTION =
      function("open_read_transaction", JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle CLOSE_READ_TRANSACTION =
      function("close_read_transaction", JAVA_LONG, ADDRESS);
  private static final MethodHandle READ_TRANSACTION_GET =
      function("read_transaction_get", JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS);
  private static final MethodHandle READ_TRANSACTION_ROWS =
      function(
          "read_transaction_rows",
          JAVA_LONG,
          JAVA_LONG,
          ADDRESS,
          ADDRESS,
          JAVA_LONG,
          ADDRESS,
          ADDRESS);
  private static final MethodHandle OPEN_SCAN =
      function("open_scan", JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle SCAN_NEXT =
      function("scan_next", JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle CLOSE_SCAN = function("close_scan", JAVA_LONG, ADDRESS);
  private static final MethodHandle OPEN_PARTS =
      function(
          "open_parts",
          JAVA_LONG,
          ADDRESS,
          JAVA_INT,
          ADDRESS,
          JAVA_LONG,
          ADDRESS,
          JAVA_LONG,
          ADDRESS,
          ADDRESS);
  private static final MethodHandle OPEN_WRITER =
      function("open_writer", JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle SUBMIT =
      function("submit", JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS);
  private static final MethodHandle TAKE_ACKS =
      function("take_acks", JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle FINISH_WRITER = function("finish_writer", JAVA_LONG, ADDRESS);
  private static final MethodHandle CLOSE_WRITER = function("close_writer", JAVA_LONG, ADDRESS);
  private static final MethodHandle OPEN_WATCH =
      function("open_watch", JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle WATCH_NEXT =
      function("watch_next", JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle STOP_WATCH = function("stop_watch", JAVA_LONG, ADDRESS);
  private static final MethodHandle CLOSE_WATCH = function("close_watch", JAVA_LONG, ADDRESS);
  private static final MethodHandle STAT_OF = function("stat_of", JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle TABLE_STAT_OF =
      function("table_stat_of", JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle KEEP_CHANGES =
      function("keep_changes", JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS);
  private static final MethodHandle SYNC = function("sync", JAVA_LONG, ADDRESS);
  private static final MethodHandle SWEEP = function("sweep", JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle BACKUP =
      function("backup", JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_INT, ADDRESS);
  private static final MethodHandle COMPACT =
      function("compact", ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle VERIFY =
      function("verify", JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, ADDRESS);

  private Native() {}

  private static MethodHandle function(String name, MemoryLayout... parameters) {
    return link("nuthatch_store_" + name, FunctionDescriptor.of(JAVA_INT, parameters));
  }

  private static MethodHandle link(String name, FunctionDescriptor signature) {
    SIGNATURES.put(name, signature);
    var address =
        LIBRARY
            .find(name)
            .orElseThrow(
                () -> new UnsatisfiedLinkError("libnuthatch: expected " + name + ", found none"));
    return LINKER.downcallHandle(address, signature);
  }

  /** Returns the name of an error code. */
  static String codeName(int code) {
    try {
      var name = (MemorySegment) CODE_NAME.invokeExact(code);
      return name.reinterpret(64).getString(0);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  private static void check(int code, Scratch scratch) {
    if (code != 0) {
      throw Failures.of(scratch.error);
    }
  }

  private static RuntimeException rethrown(Throwable thrown) {
    return switch (thrown) {
      case StoreException failure -> failure;
      case Error error -> throw error;
      default -> new IllegalStateException("a call of libnuthatch", thrown);
    };
  }

  static void open(
      MemorySegment path,
      long pathLen,
      MemorySegment options,
      MemorySegment store,
      Scratch scratch) {
    try {
      check((int) OPEN.invokeExact(path, pathLen, options, store, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void close(long store, Scratch scratch) {
    try {
      check((int) CLOSE.invokeExact(store, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void openTable(
      long store,
      MemorySegment name,
      long nameLen,
      int kind,
      MemorySegment table,
      Scratch scratch) {
    try {
      int code =
          (int)
              OPEN_TABLE.invokeExact(
                  store, name, nameLen, kind, table, scratch.error);
      check(code, scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void tableKind(long table, MemorySegment kind, Scratch scratch) {
    try {
      check((int) TABLE_KIND.invokeExact(table, kind, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void tableNames(
      long store, MemorySegment names, long capacity, MemorySegment len, Scratch scratch) {
    try {
      check((int) TABLE_NAMES.invokeExact(store, names, capacity, len, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void get(
      long table,
      MemorySegment key,
      long keyLen,
      MemorySegment value,
      long capacity,
      MemorySegment entry,
      Scratch scratch) {
    try {
      int code =
          (int)
              GET.invokeExact(
                  table, key, keyLen, value, capacity, entry, scratch.error);
      check(code, scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void count(long table, MemorySegment range, MemorySegment count, Scratch scratch) {
    try {
      check((int) COUNT.invokeExact(table, range, count, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void openReadTransaction(
      long store,
      MemorySegment handle,
      MemorySegment transaction,
      MemorySegment sequence,
      Scratch scratch) {
    try {
      int code =
          (int)
              OPEN_READ_TRANSACTION.invokeExact(
                  store, handle, transaction, sequence, scratch.error);
      check(code, scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void closeReadTransaction(long transaction, Scratch scratch) {
    try {
      check((int) CLOSE_READ_TRANSACTION.invokeExact(transaction, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void readTransactionGet(
      long transaction,
      long table,
      MemorySegment keys,
      MemorySegment entries,
      long count,
      Scratch scratch) {
    try {
      int code =
          (int)
              READ_TRANSACTION_GET.invokeExact(
                  transaction, table, keys, entries, count, scratch.error);
      check(code, scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void readTransactionRows(
      long transaction,
      long table,
      MemorySegment options,
      MemorySegment rows,
      long capacity,
      MemorySegment count,
      Scratch scratch) {
    try {
      int code =
          (int)
              READ_TRANSACTION_ROWS.invokeExact(
                  transaction, table, options, rows, capacity, count, scratch.error);
      check(code, scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void openScan(long table, MemorySegment options, MemorySegment scan, Scratch scratch) {
    try {
      check((int) OPEN_SCAN.invokeExact(table, options, scan, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void scanNext(long scan, MemorySegment rows, MemorySegment count, Scratch scratch) {
    try {
      check((int) SCAN_NEXT.invokeExact(scan, rows, count, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void closeScan(long scan, Scratch scratch) {
    try {
      check((int) CLOSE_SCAN.invokeExact(scan, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void openParts(
      long table,
      MemorySegment options,
      int threads,
      MemorySegment ranges,
      long rangeCount,
      MemorySegment scans,
      long capacity,
      MemorySegment count,
      Scratch scratch) {
    try {
      int code =
          (int)
              OPEN_PARTS.invokeExact(
                  table,
                  options,
                  threads,
                  ranges,
                  rangeCount,
                  scans,
                  capacity,
                  count,
                  scratch.error);
      check(code, scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void openWriter(long store, MemorySegment options, MemorySegment writer, Scratch scratch) {
    try {
      check((int) OPEN_WRITER.invokeExact(store, options, writer, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void submit(long writer, MemorySegment batch, long count, long tag, Scratch scratch) {
    try {
      check((int) SUBMIT.invokeExact(writer, batch, count, tag, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void takeAcks(
      long writer,
      long timeoutMs,
      MemorySegment acks,
      long capacity,
      MemorySegment count,
      Scratch scratch) {
    try {
      int code =
          (int)
              TAKE_ACKS.invokeExact(
                  writer, timeoutMs, acks, capacity, count, scratch.error);
      check(code, scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void finishWriter(long writer, Scratch scratch) {
    try {
      check((int) FINISH_WRITER.invokeExact(writer, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void closeWriter(long writer, Scratch scratch) {
    try {
      check((int) CLOSE_WRITER.invokeExact(writer, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void openWatch(
      long store,
      long table,
      MemorySegment range,
      int start,
      long sequence,
      MemorySegment watch,
      Scratch scratch) {
    try {
      int code =
          (int)
              OPEN_WATCH.invokeExact(
                  store, table, range, start, sequence, watch, scratch.error);
      check(code, scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void watchNext(
      long watch, long timeoutMs, MemorySegment changes, MemorySegment count, Scratch scratch) {
    try {
      check((int) WATCH_NEXT.invokeExact(watch, timeoutMs, changes, count, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void stopWatch(long watch, Scratch scratch) {
    try {
      check((int) STOP_WATCH.invokeExact(watch, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void closeWatch(long watch, Scratch scratch) {
    try {
      check((int) CLOSE_WATCH.invokeExact(watch, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void statOf(long store, MemorySegment stat, Scratch scratch) {
    try {
      check((int) STAT_OF.invokeExact(store, stat, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void tableStatOf(long table, MemorySegment stat, Scratch scratch) {
    try {
      check((int) TABLE_STAT_OF.invokeExact(table, stat, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void keepChanges(long store, long maxChanges, long maxBytes, Scratch scratch) {
    try {
      check((int) KEEP_CHANGES.invokeExact(store, maxChanges, maxBytes, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void sync(long store, Scratch scratch) {
    try {
      check((int) SYNC.invokeExact(store, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void sweep(long store, MemorySegment count, Scratch scratch) {
    try {
      check((int) SWEEP.invokeExact(store, count, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void backup(
      long store, MemorySegment folder, long folderLen, int compact, Scratch scratch) {
    try {
      check((int) BACKUP.invokeExact(store, folder, folderLen, compact, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void compact(
      MemorySegment folder,
      long folderLen,
      MemorySegment before,
      MemorySegment after,
      Scratch scratch) {
    try {
      check((int) COMPACT.invokeExact(folder, folderLen, before, after, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  static void verify(
      long store,
      MemorySegment progress,
      MemorySegment user,
      MemorySegment verified,
      Scratch scratch) {
    try {
      check((int) VERIFY.invokeExact(store, progress, user, verified, scratch.error), scratch);
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }
}
