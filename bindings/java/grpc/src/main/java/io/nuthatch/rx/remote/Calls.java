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

/** The calls of one store: what they have in common, and what runs. */
final class Calls {

  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final long FIRST_PAUSE_MS = 50;
  private static final long LONGEST_PAUSE_MS = 5000;
  /** How long closing waits for answers to writes, where no deadline says. */
  private static final long PATIENCE_MS = 30_000;

  /** What runs, to be failed when the store is closed. */
  interface Running {
    /** Ends it with this. */
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

  /** A call of one answer that may be made twice: tried again while the server is not reached. */
  <Q, A> Single<A> read(MethodDescriptor<Q, A> method, Q request) {
    return new UnaryCall<>(this, method, request, true);
  }

  /** A call of one answer that is tried again only where it was never sent. */
  <Q, A> Single<A> write(MethodDescriptor<Q, A> method, Q request) {
    return new UnaryCall<>(this, method, request, false);
  }

  /** A read in more than one call, made again while the server is not reached. */
  <T> Single<T> whilePassing(Single<T> read) {
    return Single.defer(
        () -> {
          var failures = new AtomicInteger();
          return read.retryWhen(
              errors ->
                  errors.flatMapSingle(
                      thrown -> {
                        boolean isLast = failures.incrementAndGet() > options.tries();
                        return isLast || !isPassing(thrown)
                            ? Single.error(thrown)
                            : pause(failures.get());
                      }));
        });
  }

  /** Whether the same call may well succeed soon. */
  boolean isPassing(Throwable thrown) {
    return thrown instanceof StoreUnavailableException known
        && (known.code().equals("unavailable") || known.code().equals("draining"))
        && !isClosed;
  }

  private Single<Boolean> pause(int failures) {
    return Single.create(
        emitter -> emitter.setDisposable(again(failures, () -> emitter.onSuccess(true))));
  }

  /** Begins a call. What comes of it comes on a thread of gRPC. */
  <Q, A> ClientCall<Q, A> start(
      MethodDescriptor<Q, A> method, CallOptions with, ClientCall.Listener<A> listener) {
    var call = channel.newCall(method, with);
    var headers = new Metadata();
    options.token().ifPresent(token -> headers.put(AUTHORIZATION, "Bearer " + token));
    call.start(listener, headers);
    return call;
  }

  /** Runs this after a pause that is longer the more often it failed. */
  Disposable again(int failures, Runnable action) {
    // Connecting begins now, so that it is done by then.
    channel.resetConnectBackoff();
    long pause = FIRST_PAUSE_MS << Math.min(failures - 1, 10);
    return Schedulers.computation()
        .scheduleDirect(action, Math.min(pause, LONGEST_PAUSE_MS), TimeUnit.MILLISECONDS);
  }

  /** Notes what runs; false where the store is closed, and nothing may run. */
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

  /** The failure as callers are to see it: of a store that was closed, everything is that. */
  StoreException told(Failure failure) {
    return isClosed ? Failure.closed() : failure.exception();
  }

  void close() {
    synchronized (this) {
      if (isClosed) {
        return;
      }
      isClosed = true;
    }
    // Writes that were accepted have their answers before the rest is failed.
    writes.awaitNone(options.deadline().map(limit -> limit.toMillis()).orElse(PATIENCE_MS));
    for (var each : running) {
      Signals.deliver(() -> each.fail(Failure.closed()));
    }
    channel.shutdownNow();
  }

  /** Notes whether a call was handed to a connection: until then the server has seen nothing. */
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
