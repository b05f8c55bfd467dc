package io.nuthatch.rx;

import java.util.Objects;
import java.util.Optional;

/**
 * The acknowledgement of an item of a stream of writes.
 *
 * @param <T> the type of the items
 * @param item the item
 * @param outcome the result of the commit; empty if the write failed
 * @param failure why nothing was written for the item; empty if it was committed
 */
public record Ack<T>(T item, Optional<Written> outcome, Optional<StoreException> failure) {

  /**
   * Returns the acknowledgement of a committed item.
   *
   * @param <T> the type of the item
   * @param item the item
   * @param written where the item was written
   * @return the acknowledgement
   */
  public static <T> Ack<T> written(T item, Written written) {
    return new Ack<>(item, Optional.of(written), Optional.empty());
  }

  /**
   * Returns the acknowledgement of an item for which nothing was written.
   *
   * @param <T> the type of the item
   * @param item the item
   * @param failure the reason
   * @return the acknowledgement
   */
  public static <T> Ack<T> failed(T item, StoreException failure) {
    return new Ack<>(item, Optional.empty(), Optional.of(failure));
  }

  /** Checks that exactly one of outcome and failure is present. */
  public Ack {
    Objects.requireNonNull(outcome, "outcome");
    if (outcome.isPresent() == failure.isPresent()) {
      throw new IllegalArgumentException("expected an outcome or a failure");
    }
  }

  /**
   * Returns the result of the commit.
   *
   * @return where the item was written
   * @throws StoreException the failure, if the item was not written
   */
  public Written orThrow() {
    if (failure.isPresent()) {
      throw failure.get();
    }
    return outcome.get();
  }
}
