package io.nuthatch.rx;

import java.util.Objects;
import java.util.Optional;

/**
 * The acknowledgement of an item that was to be written.
 *
 * @param item the item
 * @param outcome where it was written; empty where nothing of it was
 * @param failure why nothing of it was written; empty where it was
 */
public record Ack<T>(T item, Optional<Written> outcome, Optional<StoreException> failure) {

  /** The acknowledgement of what is durable. */
  public static <T> Ack<T> written(T item, Written written) {
    return new Ack<>(item, Optional.of(written), Optional.empty());
  }

  /** The acknowledgement of what was not written. */
  public static <T> Ack<T> failed(T item, StoreException failure) {
    return new Ack<>(item, Optional.empty(), Optional.of(failure));
  }

  /** Checks that exactly one of outcome and failure is there. */
  public Ack {
    Objects.requireNonNull(outcome, "outcome");
    if (outcome.isPresent() == failure.isPresent()) {
      throw new IllegalArgumentException("expected an outcome or a failure");
    }
  }

  /** Where it was written; throws what made it fail. */
  public Written orThrow() {
    if (failure.isPresent()) {
      throw failure.get();
    }
    return outcome.get();
  }
}
