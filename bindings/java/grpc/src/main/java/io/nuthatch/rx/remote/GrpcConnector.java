package io.nuthatch.rx.remote;

import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.Store;
import io.nuthatch.rx.spi.Connector;

/** Connects to stores that are served over gRPC. */
public final class GrpcConnector implements Connector {

  /** For the loader of services. */
  public GrpcConnector() {}

  @Override
  public Store connect(String address, ConnectOptions options) {
    return new RemoteStore(Channels.open(Address.parse(address), options), options);
  }
}
