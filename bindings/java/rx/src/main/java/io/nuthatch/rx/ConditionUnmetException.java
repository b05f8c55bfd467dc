package io.nuthatch.rx;

/**
 * A condition of a batch was not met, so nothing of the batch was written. Read the key again to
 * decide whether to retry.
 */
public final class ConditionUnmetException extends StoreException {

  private static final long serialVersionUID = 1L;

  private final int write;

  /**
   * Creates the exception.
   *
   * @param message the message
   * @param write index of the condition in the batch, from 0
   */
  public ConditionUnmetException(String message, int write) {
    super("condition-unmet", message, null);
    this.write = write;
  }

  /**
   * Returns the index of the condition in the batch, from 0.
   *
   * @return the index
   */
  public int write() {
    return write;
  }
}
