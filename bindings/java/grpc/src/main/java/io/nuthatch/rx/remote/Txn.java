package io.nuthatch.rx.remote;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.flow.Signals;
import io.nuthatch.store.v1.StoreGrpc;
import io.nuthatch.store.v1.StoreProto.TxnRequest;
import io.nuthatch.store.v1.StoreProto.TxnResponse;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.core.SingleEmitter;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;

/** A read transaction of the server. Responses arrive in the order of the requests. */
final class Txn extends ClientCall.Listener<TxnResponse> implements Calls.Running, AutoCloseable {

  private final Calls calls;
  private final Queue<SingleEmitter<TxnResponse>> waiting = new ArrayDeque<>();
  private ClientCall<TxnRequest, TxnResponse> call;
  /** Why no more responses arrive. */
  private StoreException failed;

  private Txn(Calls calls) {
    this.calls = calls;
  }

  /** Begins a transaction; the server opens it with the first read. */
  static Txn begin(Calls calls) {
    var txn = new Txn(calls);
    if (!calls.add(txn)) {
      throw Failure.closed();
    }
    synchronized (txn) {
      if (txn.failed == null) {
        txn.call = calls.start(StoreGrpc.getTxnMethod(), CallOptions.DEFAULT, txn);
      }
    }
    return txn;
  }

  /** Sends a request when subscribed to. Subscribers run on a thread of the call: never wait. */
  Single<TxnResponse> ask(TxnRequest request) {
    return Single.create(
        emitter -> {
          StoreException why;
          synchronized (this) {
            why = failed;
            if (why == null) {
              waiting.add(emitter);
              call.sendMessage(request);
              call.request(1);
            }
          }
          if (why != null) {
            Signals.error(emitter, why);
          }
        });
  }

  @Override
  public void onMessage(TxnResponse answer) {
    SingleEmitter<TxnResponse> emitter;
    synchronized (this) {
      emitter = waiting.poll();
    }
    if (emitter != null) {
      Signals.success(emitter, answer);
    }
  }

  @Override
  public void onClose(Status status, Metadata trailers) {
    end(
        status.isOk()
            ? Failure.noAnswer("another answer of the transaction")
            : calls.exceptionFor(Failure.of(status, trailers)));
  }

  @Override
  public void fail(StoreException thrown) {
    end(thrown);
  }

  /** Ends the transaction. Waiting and later requests fail. */
  @Override
  public void close() {
    end(StoreException.of("closed", "the read transaction has ended"));
  }

  private void end(StoreException why) {
    List<SingleEmitter<TxnResponse>> left;
    synchronized (this) {
      if (failed != null) {
        return;
      }
      failed = why;
      left = List.copyOf(waiting);
      waiting.clear();
      if (call != null) {
        call.cancel("the transaction has ended", null);
      }
    }
    calls.remove(this);
    left.forEach(emitter -> Signals.error(emitter, why));
  }
}
