package io.nuthatch.rx;

/**
 * The file is not a store ({@code not-a-store}), contradicts the format ({@code corrupt}), or has a
 * value or record that cannot be decoded ({@code decode}).
 */
public final class StoreDamagedException extends StoreException {

  private static final long serialVersionUID = 1L;

  StoreDamagedException(String code, String message, Throwable cause) {
    super(code, message, cause);
  }
}
