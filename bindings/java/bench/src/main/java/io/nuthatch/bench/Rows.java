package io.nuthatch.bench;

import static org.lmdbjava.DbiFlags.MDB_CREATE;

import io.nuthatch.rx.Batch;
import io.nuthatch.rx.Durability;
import io.nuthatch.rx.LocalStore;
import io.nuthatch.rx.Store;
import io.nuthatch.rx.StoreOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import org.lmdbjava.Dbi;
import org.lmdbjava.Env;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** The same rows in a store and in an environment of lmdbjava. Keys are numbers of five bytes. */
@State(Scope.Benchmark)
public class Rows {

  /** Bytes of a value. Those of RxLMDB's own benchmarks. */
  @Param({"5", "64", "66", "1024"})
  public int valueBytes;

  Path folder;
  LocalStore store;
  io.nuthatch.rx.Table table;
  Env<ByteBuffer> env;
  Dbi<ByteBuffer> dbi;

  /** How many rows: 1.6 million, and a tenth of them where each is long. */
  static int rows(int valueBytes) {
    return valueBytes > 500 ? 160_000 : 1_600_000;
  }

  /** Writes the rows. */
  @Setup(Level.Trial)
  public void open() throws IOException {
    folder = Files.createTempDirectory("nuthatch-bench");
    store =
        Store.open(
            folder.resolve("store"), StoreOptions.defaults().durability(Durability.NONE));
    table = store.table("rows");
    int count = rows(valueBytes);
    var batch = new Batch();
    for (int i = 0; i < count; i++) {
      batch.put(table, key(i), value(i));
      if (batch.writes().size() == 10_000 || i == count - 1) {
        store.write(batch).blockingGet();
        batch = new Batch();
      }
    }
    openLmdb(count);
  }

  private void openLmdb(int count) throws IOException {
    var path = Files.createDirectory(folder.resolve("lmdb"));
    env = Env.create().setMapSize(4L << 30).setMaxDbs(1).open(path.toFile());
    dbi = env.openDbi("rows", MDB_CREATE);
    var key = ByteBuffer.allocateDirect(5);
    var value = ByteBuffer.allocateDirect(valueBytes);
    try (var txn = env.txnWrite()) {
      for (int i = 0; i < count; i++) {
        key.clear().put(key(i)).flip();
        value.clear().put(value(i)).flip();
        dbi.put(txn, key, value);
      }
      txn.commit();
    }
  }

  private static byte[] key(int i) {
    return new byte[] {
      0, (byte) (i >>> 24), (byte) (i >>> 16), (byte) (i >>> 8), (byte) i,
    };
  }

  private byte[] value(int i) {
    var value = new byte[valueBytes];
    for (int at = 0; at < valueBytes; at++) {
      value[at] = (byte) (i + at);
    }
    return value;
  }

  /** Takes everything away. */
  @TearDown(Level.Trial)
  public void close() throws IOException {
    store.close();
    env.close();
    try (var files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(Rows::delete);
    }
  }

  private static void delete(Path path) {
    try {
      Files.delete(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
