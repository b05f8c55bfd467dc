package io.nuthatch.rx;

/**
 * A watch asked for changes that are not kept: it fell behind ({@code fell-behind}), the store was
 * replaced or lost its last commits ({@code ahead}), or keeps none ({@code no-changes-kept}). Scan
 * what is there, then watch from the sequence number that {@link Store#stat} told before.
 */
public final class FellBehindException extends StoreException {

  private static final long serialVersionUID = 1L;

  FellBehindException(String code, String message) {
    super(code, message, null);
  }
}
