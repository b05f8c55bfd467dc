package io.nuthatch.rx;

/**
 * A limit was reached: the size of the store ({@code full}), the reader slots ({@code
 * readers-full}), the pages of a transaction ({@code transaction-full}), the length of a queue
 * ({@code queue-full}), or the server's memory ({@code memory}).
 */
public final class StoreFullException extends StoreException {

  private static final long serialVersionUID = 1L;

  StoreFullException(String code, String message) {
    super(code, message, null);
  }
}
