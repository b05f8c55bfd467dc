package io.nuthatch.rx;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A server: {@code nuthatch store serve} in a process of its own. */
public final class Served implements AutoCloseable {

  private final Process process;
  public final String address;

  /** Starts a server of a folder at any free port, and waits until it listens. */
  public static Served start(Path folder, String... more) throws IOException {
    return startAt(folder, 0, more);
  }

  static Served startAt(Path folder, int port, String... more) throws IOException {
    var command = new ArrayList<String>();
    command.add(System.getProperty("nuthatch.binary"));
    command.addAll(List.of("store", "serve", folder.toString(), "--create"));
    command.addAll(List.of("--durability", "none", "--keep-changes", "10000"));
    command.addAll(List.of("--listen", "127.0.0.1:" + port));
    command.addAll(List.of(more));
    var process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    BufferedReader lines = process.inputReader();
    var first = lines.readLine();
    if (first == null || !first.startsWith("listening at ")) {
      process.destroyForcibly();
      throw new IOException("expected a server that listens, found " + first);
    }
    return new Served(process, first.substring("listening at ".length()));
  }

  private Served(Process process, String address) {
    this.process = process;
    this.address = address;
  }

  int port() {
    return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
  }

  /** Ends it as a crash would, and waits until it has ended. */
  void kill() {
    process.destroyForcibly().onExit().join();
  }

  /** Asks it to stop, and does not wait. */
  void stop() {
    process.destroy();
  }

  void awaitEnd() throws Exception {
    process.onExit().get(60, TimeUnit.SECONDS);
  }

  @Override
  public void close() {
    kill();
  }
}
