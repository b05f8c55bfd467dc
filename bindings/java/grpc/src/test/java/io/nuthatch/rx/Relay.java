package io.nuthatch.rx;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicLong;

/** Hands on what a client and a server say, and counts the bytes of the server's answers. */
final class Relay implements AutoCloseable {

  final AtomicLong answered = new AtomicLong();
  private final ServerSocket here;
  private final int server;

  /** Connections to {@link #address} go to a server of this machine. */
  Relay(int server) throws IOException {
    this.server = server;
    this.here = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
    Thread.ofPlatform().daemon().start(this::accept);
  }

  String address() {
    return "grpc://127.0.0.1:" + here.getLocalPort();
  }

  private void accept() {
    try {
      while (true) {
        var client = here.accept();
        var there = new Socket(InetAddress.getLoopbackAddress(), server);
        client.setTcpNoDelay(true);
        there.setTcpNoDelay(true);
        hand(client.getInputStream(), there.getOutputStream(), new AtomicLong());
        hand(there.getInputStream(), client.getOutputStream(), answered);
      }
    } catch (IOException closed) {
      // The test is over.
    }
  }

  private static void hand(InputStream from, OutputStream to, AtomicLong count) {
    Runnable handing =
        () -> {
          var bytes = new byte[64 << 10];
          try (from; to) {
            for (int len = from.read(bytes); len >= 0; len = from.read(bytes)) {
              count.addAndGet(len);
              to.write(bytes, 0, len);
            }
          } catch (IOException closed) {
            // The other end hears of it, too.
          }
        };
    Thread.ofPlatform().daemon().start(handing);
  }

  @Override
  public void close() throws IOException {
    here.close();
  }
}
