package io.nuthatch.rx;

/**
 * A remote store did not respond: it cannot be reached ({@code unavailable}), is stopping ({@code
 * draining}), did not respond before the deadline ({@code deadline}), or ended a transaction at a
 * time limit ({@code expired}). A write may have been executed.
 */
public final class StoreUnavailableException extends StoreException {

  private static final long serialVersionUID = 1L;

  StoreUnavailableException(String code, String message, Throwable cause) {
    super(code, message, cause);
  }
}
