package io.nuthatch.rx.remote;

import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.Store;
import io.nuthatch.rx.spi.Connector;

/** Connects to remote stores over gRPC. */
public final class GrpcConnector implements Connector {

  /** Called by {@link java.util.ServiceLoader}. */
  public GrpcConnector() {}

  @Override
  public Store connect(String address, ConnectOptions options) {
    return new RemoteStore(Channels.open(Address.parse(address), options), options);
  }
}
