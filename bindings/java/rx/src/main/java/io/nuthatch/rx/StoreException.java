package io.nuthatch.rx;

/**
 * A call of a store failed. {@link #code} is a short name that stays the same between versions:
 * those of {@code testdata/store/errors.csv}, and, of a remote store, of {@code statuses.csv}.
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

  /** What failed, as a short name such as {@code full}. */
  public final String code() {
    return code;
  }

  /** The exception of a code, of the class that belongs to it. */
  public static StoreException of(String code, String message) {
    return of(code, message, null);
  }

  /** The exception of a code, of the class that belongs to it, with its cause, if there is one. */
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

  /** Refuses an option that is out of its range. */
  static void check(boolean holds, String option, String expected, Object found) {
    if (!holds) {
      throw of("options", option + ": expected " + expected + ", found " + found);
    }
  }
}
