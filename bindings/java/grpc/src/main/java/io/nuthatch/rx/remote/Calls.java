package io.nuthatch.rx.remote;

import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.StoreUnavailableException;
import io.nuthatch.rx.flow.Signals;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The calls of one store: their common settings, and the calls in progress. */
final class Calls {

  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final long FIRST_PAUSE_MS = 50;
  private static final long LONGEST_PAUSE_MS = 5000;
  /** Maximum time that closing waits for responses to writes, if no deadline is set. */
  private static final long PATIENCE_MS = 30_000;

  /** A call in progress, which fails when the store is closed. */
  interface Running {
    /** Ends the call with this exception. */
    void fail(StoreException thrown);
  }

  final ManagedChannel channel;
  final ConnectOptions options;
  final InFlight writes = new InFlight();

  private final Set<Running> running = ConcurrentHashMap.newKeySet();
  private volatile boolean isClosed;

  Calls(ManagedChannel channel, ConnectOptions options) {
    this.channel = channel;
    this.options = options;
  }

  /** Returns a unary call that may be repeated: retried while the server cannot be reached. */
  <Q, A> Single<A> read(MethodDescriptor<Q, A> method, Q request) {
    return new UnaryCall<>(this, method, request, true);
  }

  /** Returns a unary call that is retried only if it was not sent. */
  <Q, A> Single<A> write(MethodDescriptor<Q, A> method, Q request) {
    return new UnaryCall<>(this, method, request, false);
  }

  /** Returns a read of several calls, retried while the server cannot be reached. */
  <T> Single<T> whilePassing(Single<T> read) {
    return Single.defer(
        () -> {
          var failures = new AtomicInteger();
          return read.retryWhen(
              errors ->
                  errors.flatMapSingle(
                      thrown -> {
                        boolean isLast = failures.incrementAndGet() > options.tries();
                        return isLast || !isTransient(thrown)
                            ? Single.error(thrown)
                            : pause(failures.get());
                      }));
        });
  }

  /** Returns whether a retry of the same call may succeed soon. */
  boolean isTransient(Throwable thrown) {
    return thrown instanceof StoreUnavailableException known
        && (known.code().equals("unavailable") || known.code().equals("draining"))
        && !isClosed;
  }

  private Single<Boolean> pause(int failures) {
    return Single.create(
        emitter -> emitter.setDisposable(again(failures, () -> emitter.onSuccess(true))));
  }

  /** Starts a call. Its responses arrive on a thread of gRPC. */
  <Q, A> ClientCall<Q, A> start(
      MethodDescriptor<Q, A> method, CallOptions with, ClientCall.Listener<A> listener) {
    var call = channel.newCall(method, with);
    var headers = new Metadata();
    options.token().ifPresent(token -> headers.put(AUTHORIZATION, "Bearer " + token));
    call.start(listener, headers);
    return call;
  }

  /** Runs an action after a delay that grows with the number of failures. */
  Disposable again(int failures, Runnable action) {
    // Connecting starts now, so that it may be complete after the delay.
    channel.resetConnectBackoff();
    long pause = FIRST_PAUSE_MS << Math.min(failures - 1, 10);
    return Schedulers.computation()
        .scheduleDirect(action, Math.min(pause, LONGEST_PAUSE_MS), TimeUnit.MILLISECONDS);
  }

  /** Registers a call in progress. Returns false if the store is closed. */
  boolean add(Running one) {
    running.add(one);
    if (isClosed) {
      running.remove(one);
    }
    return !isClosed;
  }

  void remove(Running one) {
    running.remove(one);
  }

  boolean isClosed() {
    return isClosed;
  }

  /** Returns the failure for the caller: if the store is closed, that is the failure. */
  StoreException exceptionFor(Failure failure) {
    return isClosed ? Failure.closed() : failure.exception();
  }

  void close() {
    synchronized (this) {
      if (isClosed) {
        return;
      }
      isClosed = true;
    }
    // Accepted writes get their responses before all other calls fail.
    writes.awaitNone(options.deadline().map(limit -> limit.toMillis()).orElse(PATIENCE_MS));
    for (var each : running) {
      Signals.deliver(() -> each.fail(Failure.closed()));
    }
    channel.shutdownNow();
  }

  /** Records whether a call was passed to a connection: until then the server has not seen it. */
  static final class Sent extends ClientStreamTracer.Factory {
    private volatile boolean isSent;

    boolean isSent() {
      return isSent;
    }

    @Override
    public ClientStreamTracer newClientStreamTracer(
        ClientStreamTracer.StreamInfo info, Metadata headers) {
      return new ClientStreamTracer() {
        @Override
        public void streamCreated(Attributes transport, Metadata sent) {
          isSent = true;
        }
      };
    }
  }
}
