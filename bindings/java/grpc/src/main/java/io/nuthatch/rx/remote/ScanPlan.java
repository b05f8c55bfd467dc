package io.nuthatch.rx.remote;

import io.grpc.MethodDescriptor;
import io.nuthatch.store.v1.StoreGrpc;
import io.nuthatch.store.v1.StoreProto.ScanRequest;

/** A scan. It is not retried after it has received rows: others would be from a later state. */
final class ScanPlan<T> implements Plan<Rows, T> {

  private static final MethodDescriptor<ScanRequest, Rows> METHOD =
      StoreGrpc.getScanMethod()
          .toBuilder(StoreGrpc.getScanMethod().getRequestMarshaller(), Rows.MARSHALLER)
          .build();

  /** Converts a message. */
  @FunctionalInterface
  interface Reading<T> {
    Chunk<T> read(Rows rows);
  }

  private final Calls calls;
  private final ScanRequest request;
  private final Reading<T> reading;
  private volatile boolean hasRows;

  ScanPlan(Calls calls, ScanRequest request, Reading<T> reading) {
    this.calls = calls;
    this.request = request;
    this.reading = reading;
  }

  @Override
  public Source<Rows> open() {
    return new CallSource<>(calls, METHOD, request);
  }

  @Override
  public Chunk<T> read(Rows rows) {
    return reading.read(rows);
  }

  @Override
  public void came(Rows rows) {
    hasRows = true;
  }

  @Override
  public boolean mayResume() {
    return !hasRows;
  }
}
