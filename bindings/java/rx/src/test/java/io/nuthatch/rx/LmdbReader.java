package io.nuthatch.rx;

import static org.lmdbjava.EnvFlags.MDB_RDONLY_ENV;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.lmdbjava.ByteBufferProxy;
import org.lmdbjava.Env;

/** A program: prints the rows of the table {@code rows} as lmdbjava reads them. */
final class LmdbReader {

  private LmdbReader() {}

  public static void main(String[] arguments) {
    var folder = new File(arguments[0]);
    var builder = Env.create(ByteBufferProxy.PROXY_SAFE).setMaxDbs(4);
    try (var env = builder.open(folder, MDB_RDONLY_ENV)) {
      var table = env.openDbi("rows");
      try (var txn = env.txnRead();
          var rows = table.iterate(txn)) {
        for (var row : rows) {
          System.out.println(text(row.key()) + "=" + text(row.val()));
        }
      }
    }
  }

  private static String text(ByteBuffer buffer) {
    return StandardCharsets.UTF_8.decode(buffer).toString();
  }
}
