package io.nuthatch.rx;

/**
 * Bytes of the store contradict its format ({@code not-a-store}, {@code corrupt}, {@code decode}).
 */
public final class StoreDamagedException extends StoreException {

  private static final long serialVersionUID = 1L;

  StoreDamagedException(String code, String message, Throwable cause) {
    super(code, message, cause);
  }
}
