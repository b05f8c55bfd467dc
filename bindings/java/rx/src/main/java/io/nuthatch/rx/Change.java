package io.nuthatch.rx;

import java.time.Instant;
import java.util.Optional;

/**
 * A committed change.
 *
 * @param sequence its number: greater than those of all changes before it
 * @param transaction the transaction it belongs to; changes of one follow one another
 * @param operation what happened
 * @param table the name of the table; empty for the main one
 * @param key the key
 * @param value the new value; empty when there is none any more
 * @param expiresAt when it expires; empty for never
 */
public record Change(
    long sequence,
    long transaction,
    Operation operation,
    String table,
    byte[] key,
    Optional<byte[]> value,
    Optional<Instant> expiresAt) {

  /** What happened to a key. */
  public enum Operation {
    /** It has a new value. */
    PUT,
    /** It was deleted. */
    DELETE,
    /** It expired, and was taken out of the table. */
    EXPIRE
  }
}
