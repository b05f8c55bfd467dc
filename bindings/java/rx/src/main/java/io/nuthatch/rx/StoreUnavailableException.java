package io.nuthatch.rx;

/**
 * A remote store did not answer: it cannot be reached ({@code unavailable}) or stops ({@code
 * draining}), the deadline has passed ({@code deadline}), or a transaction was open for longer than
 * the server allows ({@code expired}). A write may have happened all the same.
 */
public final class StoreUnavailableException extends StoreException {

  private static final long serialVersionUID = 1L;

  StoreUnavailableException(String code, String message, Throwable cause) {
    super(code, message, cause);
  }
}
