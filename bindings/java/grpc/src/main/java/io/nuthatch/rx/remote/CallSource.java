package io.nuthatch.rx.remote;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;

/** The messages of a call whose response is a stream. */
final class CallSource<Q, M> extends ClientCall.Listener<M> implements Source<M> {

  private final Calls calls;
  private final MethodDescriptor<Q, M> method;
  private final Q request;
  private Sink<M> sink;
  private ClientCall<Q, M> call;

  CallSource(Calls calls, MethodDescriptor<Q, M> method, Q request) {
    this.calls = calls;
    this.method = method;
    this.request = request;
  }

  @Override
  public void start(Sink<M> to) {
    sink = to;
    call = calls.start(method, CallOptions.DEFAULT, this);
    call.sendMessage(request);
    call.halfClose();
  }

  @Override
  public void request(int messages) {
    call.request(messages);
  }

  @Override
  public void cancel() {
    call.cancel("the subscriber has cancelled", null);
  }

  @Override
  public void onMessage(M message) {
    sink.message(message);
  }

  @Override
  public void onClose(Status status, Metadata trailers) {
    sink.end(status.isOk() ? null : Failure.of(status, trailers));
  }
}
