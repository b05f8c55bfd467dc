package io.nuthatch.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.lmdbjava.Dbi;
import org.lmdbjava.DbiFlags;
import org.lmdbjava.Env;
import org.lmdbjava.Txn;

/** The keys of {@link Lookups} in LMDB, read by one read transaction of lmdbjava. */
final class LmdbRival implements AutoCloseable {

  private static final long MAP_BYTES = 1L << 30;

  private final Path folder = Files.createTempDirectory("nuthatch-bench-lmdb");
  private final Env<ByteBuffer> env;
  private final Dbi<ByteBuffer> dbi;
  private final Txn<ByteBuffer> read;
  private final ByteBuffer key = ByteBuffer.allocateDirect(64);

  LmdbRival() throws IOException {
    env = Env.create().setMapSize(MAP_BYTES).open(folder.toFile());
    dbi = env.openDbi((String) null, DbiFlags.MDB_CREATE);
    try (var write = env.txnWrite()) {
      var value = ByteBuffer.allocateDirect(64);
      for (int i = 0; i < Lookups.KEYS; i++) {
        set(key, ("key_" + i).getBytes(StandardCharsets.UTF_8));
        set(value, ("val_" + i).getBytes(StandardCharsets.UTF_8));
        dbi.put(write, key, value);
      }
      write.commit();
    }
    read = env.txnRead();
  }

  private static void set(ByteBuffer buffer, byte[] bytes) {
    buffer.clear().put(bytes).flip();
  }

  String get(byte[] wanted) {
    set(key, wanted);
    var found = dbi.get(read, key);
    var bytes = new byte[found.remaining()];
    found.get(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  @Override
  public void close() throws IOException {
    read.close();
    env.close();
    TemporaryFiles.delete(folder);
  }
}
