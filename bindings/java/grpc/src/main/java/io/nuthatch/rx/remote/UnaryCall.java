package io.nuthatch.rx.remote;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.flow.Signals;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.core.SingleObserver;
import io.reactivex.rxjava3.disposables.Disposable;
import java.util.concurrent.TimeUnit;

/** A call with one request and one response. Each subscription starts its own call. */
final class UnaryCall<Q, A> extends Single<A> {

  private final Calls calls;
  private final MethodDescriptor<Q, A> method;
  private final Q request;
  private final boolean isRead;

  UnaryCall(Calls calls, MethodDescriptor<Q, A> method, Q request, boolean isRead) {
    this.calls = calls;
    this.method = method;
    this.request = request;
    this.isRead = isRead;
  }

  @Override
  protected void subscribeActual(SingleObserver<? super A> observer) {
    var tries = new Tries(observer);
    observer.onSubscribe(tries);
    tries.begin();
  }

  /** The attempts of a call. */
  private final class Tries implements Disposable, Calls.Running {

    private final SingleObserver<? super A> observer;
    private final Deadline deadline =
        calls
            .options
            .deadline()
            .map(limit -> Deadline.after(limit.toNanos(), TimeUnit.NANOSECONDS))
            .orElse(null);
    private ClientCall<Q, A> call;
    private Disposable pause = Disposable.disposed();
    private int failures;
    private boolean isBegun;
    private volatile boolean isDone;

    Tries(SingleObserver<? super A> observer) {
      this.observer = observer;
    }

    void begin() {
      synchronized (this) {
        if (isDone) {
          return;
        }
        isBegun = calls.add(this);
        isDone = !isBegun;
        if (isBegun && !isRead) {
          calls.writes.begin();
        }
      }
      if (isBegun) {
        call();
      } else {
        Signals.error(observer, Failure.closed());
      }
    }

    private synchronized void call() {
      if (isDone) {
        return;
      }
      var answer = new Answer();
      var options = CallOptions.DEFAULT.withDeadline(deadline);
      if (!isRead) {
        options = options.withStreamTracerFactory(answer.sent);
      }
      call = calls.start(method, options, answer);
      call.request(2);
      call.sendMessage(request);
      call.halfClose();
    }

    /** Returns true for the first caller, which then delivers the outcome. */
    private boolean end() {
      synchronized (this) {
        if (isDone) {
          return false;
        }
        isDone = true;
        pause.dispose();
        if (isBegun) {
          calls.remove(this);
          if (!isRead) {
            calls.writes.end();
          }
        }
      }
      return true;
    }

    @Override
    public void dispose() {
      if (end()) {
        cancel();
      }
    }

    @Override
    public void fail(StoreException thrown) {
      if (end()) {
        cancel();
        Signals.error(observer, thrown);
      }
    }

    private synchronized void cancel() {
      if (call != null) {
        call.cancel("the subscriber has cancelled", null);
      }
    }

    @Override
    public boolean isDisposed() {
      return isDone;
    }

    private void failed(Failure failure, boolean isSent) {
      boolean isAgain = failure.isTransient() && (isRead || !isSent) && !calls.isClosed();
      synchronized (this) {
        if (isAgain && failures < calls.options.tries() && !isDone) {
          failures++;
          pause = calls.again(failures, this::call);
          return;
        }
      }
      if (end()) {
        Signals.error(observer, calls.exceptionFor(failure));
      }
    }

    /** Receives the result of one attempt. */
    private final class Answer extends ClientCall.Listener<A> {

      final Calls.Sent sent = new Calls.Sent();
      private A message;

      @Override
      public void onMessage(A answer) {
        message = answer;
      }

      @Override
      public void onClose(Status status, Metadata trailers) {
        if (!status.isOk()) {
          failed(Failure.of(status, trailers), sent.isSent());
        } else if (end()) {
          if (message == null) {
            Signals.error(observer, Failure.noAnswer("a message"));
          } else {
            Signals.success(observer, message);
          }
        }
      }
    }
  }
}
