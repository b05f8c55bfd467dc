package io.nuthatch.rx.remote;

import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.Store;

/** Connects to stores of other machines. */
public final class RemoteStores {

  private RemoteStores() {}

  /** Connects to a store at {@code grpc://host:port} or {@code grpcs://host:port}. */
  public static Store connect(String address, ConnectOptions options) {
    throw new UnsupportedOperationException();
  }
}
