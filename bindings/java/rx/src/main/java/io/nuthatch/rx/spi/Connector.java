package io.nuthatch.rx.spi;

import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.Store;
import io.nuthatch.rx.StoreException;
import java.util.ServiceLoader;

/**
 * Connects to remote stores. The library {@code nuthatch-rx-grpc} provides it, so programs that use
 * only local stores need no network libraries.
 */
public interface Connector {

  /**
   * Connects to a store at {@code grpc://host:port} or {@code grpcs://host:port}.
   *
   * @param address {@code grpc://host:port} or {@code grpcs://host:port}
   * @param options the options
   * @return the store
   * @throws StoreException if the address or an option is not valid
   */
  Store connect(String address, ConnectOptions options);

  /**
   * Returns the connector of the class loader of this library, or else of the thread's context
   * class loader.
   *
   * @return the connector
   * @throws StoreException with the code {@code options} if there is none
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
