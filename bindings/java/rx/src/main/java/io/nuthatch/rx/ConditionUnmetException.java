package io.nuthatch.rx;

/** A condition of a batch did not hold, so nothing of it was written: read again, decide again. */
public final class ConditionUnmetException extends StoreException {

  private static final long serialVersionUID = 1L;

  private final int write;

  /**
   * A condition did not hold.
   *
   * @param write which write of the batch it is, counted from zero
   */
  public ConditionUnmetException(String message, int write) {
    super("condition-unmet", message, null);
    this.write = write;
  }

  /** Which write of the batch the condition is, counted from zero. */
  public int write() {
    return write;
  }
}
