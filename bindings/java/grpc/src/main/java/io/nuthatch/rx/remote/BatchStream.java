package io.nuthatch.rx.remote;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.nuthatch.rx.Batch;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.Written;
import io.nuthatch.rx.flow.Signals;
import io.nuthatch.store.v1.StoreGrpc;
import io.nuthatch.store.v1.StoreProto.BatchRequest;
import io.nuthatch.store.v1.StoreProto.BatchResponse;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.core.SingleEmitter;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.subjects.CompletableSubject;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Batches in one call, each acknowledged separately. A batch is converted to a message only when
 * the connection can send it.
 */
final class BatchStream implements Calls.Running, AutoCloseable {

  private record One(Batch batch, SingleEmitter<Written> emitter) {}

  private final RemoteStore store;
  private final Calls calls;
  private final Deque<One> waiting = new ArrayDeque<>();
  private final Map<Long, One> sent = new LinkedHashMap<>();
  private final CompletableSubject closed = CompletableSubject.create();
  private ClientCall<BatchRequest, BatchResponse> call;
  private Disposable pause = Disposable.disposed();
  private long lastId;
  private final Losses losses;
  private boolean hasAnswered;
  /** Whether tables are being opened, or a delay before a retry has not ended. */
  private boolean isHeld;
  /** Why no more batches are written. */
  private StoreException failed;
  /** Whether the stream of acknowledgements has ended, and receives no more signals. */
  private boolean isAbandoned;
  /** Whether an acknowledgement is being delivered. */
  private boolean isDelivering;
  /** The failure that ends the stream after the acknowledgement that is being delivered. */
  private StoreException failsNext;

  BatchStream(RemoteStore store) {
    this.store = store;
    this.calls = store.calls;
    this.losses = new Losses(calls.options);
    if (!calls.add(this)) {
      throw Failure.closed();
    }
  }

  /** Submits a batch when the result is subscribed to. */
  Single<Written> write(Batch batch) {
    return Single.create(emitter -> submit(new One(batch, emitter)));
  }

  private void submit(One one) {
    StoreException why;
    synchronized (this) {
      if (isAbandoned) {
        return;
      }
      why = calls.isClosed() ? Failure.closed() : failed;
      if (why == null) {
        calls.writes.begin();
        waiting.add(one);
      }
    }
    if (why != null) {
      Signals.error(one.emitter, why);
    } else {
      pump();
    }
  }

  /** Sends the batches that can be sent now. */
  private void pump() {
    while (true) {
      One refused;
      StoreException why;
      synchronized (this) {
        if (failed != null || isHeld || waiting.isEmpty() || !isReady()) {
          return;
        }
        try {
          var missing = store.unopened(waiting.peek().batch);
          if (missing.isEmpty()) {
            send(waiting.poll());
            continue;
          }
          isHeld = true;
          var opening = store.open(missing).subscribe(this::release, this::refuseFirst);
          pause = opening;
          return;
        } catch (StoreException thrown) {
          refused = waiting.poll();
          why = thrown;
        }
      }
      calls.writes.end();
      Signals.error(refused.emitter, why);
    }
  }

  private boolean isReady() {
    return call == null || sent.isEmpty() || call.isReady();
  }

  private void send(One one) {
    if (call == null) {
      var answers = new Answers();
      call =
          calls.start(
              StoreGrpc.getBatchMethod(),
              CallOptions.DEFAULT.withStreamTracerFactory(answers.sentAny),
              answers);
      call.request(1);
    }
    lastId++;
    sent.put(lastId, one);
    var request = BatchRequest.newBuilder().setId(lastId);
    one.batch.writes().forEach(write -> request.addWrites(Convert.write(write)));
    call.sendMessage(request.build());
  }

  private void release() {
    synchronized (this) {
      isHeld = false;
    }
    pump();
  }

  /** Handles a failure to open the tables of the first batch. */
  private void refuseFirst(Throwable thrown) {
    One one;
    synchronized (this) {
      if (calls.isTransient(thrown) && hasAnswered && failed == null && losses.mayReconnect()) {
        pause = calls.again(losses.count(), this::release);
        return;
      }
      isHeld = false;
      one = waiting.poll();
    }
    if (one != null) {
      calls.writes.end();
      Signals.error(one.emitter, thrown instanceof StoreException e ? described(e) : thrown);
    }
    pump();
  }

  /**
   * Ends the stream. The last write is not in progress anymore when its acknowledgement is
   * delivered, so the failure may have to wait for the end of that delivery.
   */
  @Override
  public void fail(StoreException thrown) {
    end(thrown, false);
    synchronized (this) {
      if (isDelivering) {
        failsNext = thrown;
        return;
      }
    }
    closed.onError(thrown);
  }

  private void endDelivery() {
    StoreException next;
    synchronized (this) {
      isDelivering = false;
      next = failsNext;
    }
    if (next != null) {
      closed.onError(next);
    }
  }

  /** Fails the stream when the store is closed, even if no batch is waiting. */
  Completable closed() {
    return closed;
  }

  /**
   * Ends the call, at once if batches are not acknowledged yet. The stream of acknowledgements has
   * ended, so these batches are dropped without a signal. RxJava would report each of them as
   * undeliverable.
   */
  @Override
  public void close() {
    end(StoreException.of("closed", "the stream of batches has ended"), true);
  }

  private void end(StoreException why, boolean isAbandoned) {
    List<One> left;
    synchronized (this) {
      if (failed != null) {
        return;
      }
      failed = why;
      this.isAbandoned = isAbandoned;
      pause.dispose();
      left = new ArrayList<>(sent.values());
      left.addAll(waiting);
      sent.clear();
      waiting.clear();
      if (call != null && left.isEmpty()) {
        call.halfClose();
      } else if (call != null) {
        call.cancel("the stream of acknowledgements has ended", null);
      }
    }
    calls.remove(this);
    for (var one : left) {
      calls.writes.end();
      if (!isAbandoned) {
        Signals.error(one.emitter, why);
      }
    }
  }

  /**
   * Sends batches without an acknowledgement in another call, in order. The server has received
   * none of them, or there are none.
   */
  private boolean beginAgain(Answers ended, Failure failure) {
    synchronized (this) {
      boolean isUnseen = !ended.sentAny.isSent() || sent.isEmpty();
      if (failed != null || calls.isClosed() || !failure.isTransient() || !isUnseen) {
        return false;
      }
      call = null;
      if (sent.isEmpty() && waiting.isEmpty()) {
        return true;
      }
      // A server that was never reached is reported after some attempts.
      if (!(hasAnswered ? losses.mayReconnect() : losses.mayTryAgain())) {
        return false;
      }
      var again = new ArrayList<>(sent.values());
      sent.clear();
      again.reversed().forEach(waiting::addFirst);
      isHeld = true;
      pause = calls.again(losses.count(), this::release);
      return true;
    }
  }

  private synchronized StoreException described(StoreException last) {
    return losses.described(last);
  }

  /** Receives the acknowledgements of one call. */
  private final class Answers extends ClientCall.Listener<BatchResponse> {

    final Calls.Sent sentAny = new Calls.Sent();

    @Override
    public void onReady() {
      pump();
    }

    @Override
    public void onMessage(BatchResponse answer) {
      One one;
      synchronized (BatchStream.this) {
        losses.clear();
        hasAnswered = true;
        one = sent.remove(answer.getId());
        isDelivering = one != null;
        call.request(1);
      }
      if (one == null) {
        return;
      }
      // Before the delivery: a subscriber may close the store when it receives the last one.
      calls.writes.end();
      try {
        deliver(one, answer);
      } finally {
        endDelivery();
      }
    }

    private void deliver(One one, BatchResponse answer) {
      switch (answer.getOutcomeCase()) {
        case WRITTEN -> Signals.success(one.emitter, Convert.written(answer.getWritten()));
        case PROBLEM -> Signals.error(one.emitter, Failure.of(answer.getProblem()));
        default -> Signals.error(one.emitter, Failure.noAnswer("the outcome of the batch"));
      }
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      var failure = Failure.of(status.isOk() ? Status.UNAVAILABLE : status, trailers);
      if (!beginAgain(this, failure)) {
        end(described(calls.exceptionFor(failure)), false);
      }
    }
  }
}
