package io.nuthatch.rx.spi;

import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.Store;
import io.nuthatch.rx.StoreException;
import java.util.ServiceLoader;

/**
 * Connects to stores of other machines. {@code nuthatch-rx-grpc} provides it, so that who only
 * opens stores of this machine has no library for the network.
 */
public interface Connector {

  /** Connects to a store at {@code grpc://host:port} or {@code grpcs://host:port}. */
  Store connect(String address, ConnectOptions options);

  /**
   * The one that is there: beside this library, or where the thread looks for classes. Fails with
   * the code {@code options} where there is none.
   */
  static Connector find() {
    var beside = ServiceLoader.load(Connector.class, Connector.class.getClassLoader()).findFirst();
    return beside
        .or(() -> ServiceLoader.load(Connector.class).findFirst())
        .orElseThrow(
            () ->
                StoreException.of(
                    "options", "expected io.nuthatch:nuthatch-rx-grpc among the libraries"));
  }
}
