package io.nuthatch.rx;

/** The store was closed, or a read transaction of it has ended. */
public final class StoreClosedException extends StoreException {

  private static final long serialVersionUID = 1L;

  StoreClosedException(String message, Throwable cause) {
    super("closed", message, cause);
  }
}
