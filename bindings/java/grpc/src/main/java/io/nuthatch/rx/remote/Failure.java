package io.nuthatch.rx.remote;

import io.grpc.Metadata;
import io.grpc.Status;
import io.nuthatch.rx.ConditionUnmetException;
import io.nuthatch.rx.StoreException;
import io.nuthatch.store.v1.StoreProto.Problem;

/**
 * Why a call failed.
 *
 * @param exception the exception for the caller
 * @param isTransient whether a retry may succeed soon: the server cannot be reached, or all its
 *     reader slots are in use
 */
record Failure(StoreException exception, boolean isTransient) {

  private static final Metadata.Key<String> CODE =
      Metadata.Key.of("nuthatch-code", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> WRITE =
      Metadata.Key.of("nuthatch-write", Metadata.ASCII_STRING_MARSHALLER);

  /** Returns the failure for a gRPC status and its trailers. */
  static Failure of(Status status, Metadata trailers) {
    var reported = trailers == null ? null : trailers.get(CODE);
    var code = reported != null ? reported : codeOf(status);
    boolean isTransient =
        status.getCode() == Status.Code.UNAVAILABLE || code.equals("readers-full");
    if (code.equals("condition-unmet")) {
      var unmet = new ConditionUnmetException(message(status), write(trailers));
      return new Failure(unmet, isTransient);
    }
    return new Failure(StoreException.of(code, message(status), status.getCause()), isTransient);
  }

  /** Returns the failure in a response. */
  static StoreException of(Problem problem) {
    return problem.getCode().equals("condition-unmet")
        ? new ConditionUnmetException(problem.getMessage(), (int) problem.getWrite())
        : StoreException.of(problem.getCode(), problem.getMessage());
  }

  /** Returns the exception for calls in progress when the store is closed, and for later calls. */
  static StoreException closed() {
    return StoreException.of("closed", "the store is closed");
  }

  /** Returns the exception for an answer of the server that lacks a part. */
  static StoreException noAnswer(String expected) {
    var problem = "expected %s from the server, found none; do the versions of both match?";
    return StoreException.of("decode", problem.formatted(expected));
  }

  /** Returns the failure if the server sent no error: a failure of this side. */
  private static String codeOf(Status status) {
    return switch (status.getCode()) {
      case UNAVAILABLE -> "unavailable";
      case DEADLINE_EXCEEDED -> "deadline";
      case RESOURCE_EXHAUSTED -> "too-long";
      default -> "status";
    };
  }

  private static String message(Status status) {
    var text = status.getDescription();
    if (text == null || text.isEmpty()) {
      text = status.getCode().name();
    }
    var cause = status.getCause();
    if (cause == null || cause.getMessage() == null) {
      return text;
    }
    // The message of an exception of Netty has several lines; the first is the reason.
    var first = cause.getMessage().lines().findFirst().orElse("");
    return Reasons.of(cause).orElse(text + ": " + first);
  }

  private static int write(Metadata trailers) {
    try {
      return Integer.parseInt(trailers.get(WRITE));
    } catch (NumberFormatException absent) {
      return 0;
    }
  }
}
