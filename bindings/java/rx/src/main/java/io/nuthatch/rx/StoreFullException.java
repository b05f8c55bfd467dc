package io.nuthatch.rx;

/**
 * There is no room: in the store ({@code full}), for one more transaction that reads ({@code
 * readers-full}), in a transaction ({@code transaction-full}), in a queue ({@code queue-full}) or
 * in the server's memory ({@code memory}).
 */
public final class StoreFullException extends StoreException {

  private static final long serialVersionUID = 1L;

  StoreFullException(String code, String message) {
    super(code, message, null);
  }
}
