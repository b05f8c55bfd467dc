package io.nuthatch.rx;

/**
 * A watch needs changes that the store does not have: they were dropped ({@code fell-behind}), the
 * store was replaced or lost its last commits ({@code ahead}), or it keeps no changes ({@code
 * no-changes-kept}). To recover, read {@link Store#stat}, scan the table, then watch after the
 * {@link StoreStat#sequence} that was read first.
 */
public final class FellBehindException extends StoreException {

  private static final long serialVersionUID = 1L;

  FellBehindException(String code, String message) {
    super(code, message, null);
  }
}
