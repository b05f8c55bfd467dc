package io.nuthatch.rx;

/**
 * A call of a store failed. {@link #code} is a short name that is the same in all versions: one of
 * {@code testdata/store/errors.csv}, or, for a remote store, of {@code statuses.csv}.
 */
public sealed class StoreException extends RuntimeException
    permits ConditionUnmetException,
        FellBehindException,
        StoreClosedException,
        StoreDamagedException,
        StoreFullException,
        StoreUnavailableException {

  private static final long serialVersionUID = 1L;

  private final String code;

  StoreException(String code, String message, Throwable cause) {
    super(message, cause);
    this.code = code;
  }

  /**
   * Returns the short name of the error, such as {@code full}.
   *
   * @return the code
   */
  public final String code() {
    return code;
  }

  /**
   * Returns the exception for a code, of the class that belongs to the code.
   *
   * @param code the code
   * @param message the message
   * @return the exception
   */
  public static StoreException of(String code, String message) {
    return of(code, message, null);
  }

  /**
   * Returns the exception for a code, of the class that belongs to the code. {@code cause} may be
   * {@code null}.
   *
   * @param code the code
   * @param message the message
   * @param cause the cause, or {@code null}
   * @return the exception
   */
  public static StoreException of(String code, String message, Throwable cause) {
    return switch (code) {
      case "closed" -> new StoreClosedException(message, cause);
      case "condition-unmet" -> new ConditionUnmetException(message, 0);
      case "fell-behind", "ahead", "no-changes-kept" -> new FellBehindException(code, message);
      case "not-a-store", "corrupt", "decode" -> new StoreDamagedException(code, message, cause);
      case "full", "readers-full", "transaction-full", "queue-full", "memory" ->
          new StoreFullException(code, message);
      case "unavailable", "draining", "deadline", "expired" ->
          new StoreUnavailableException(code, message, cause);
      default -> new StoreException(code, message, cause);
    };
  }

  /** Throws if an option is out of range. */
  static void check(boolean holds, String option, String expected, Object found) {
    if (!holds) {
      throw of("options", option + ": expected " + expected + ", found " + found);
    }
  }
}
