package io.nuthatch.rx;

import java.time.Instant;
import java.util.Optional;

/**
 * A committed change.
 *
 * @param sequence the sequence number, greater than those of all earlier changes
 * @param transaction the number of its transaction; changes of one transaction are consecutive
 * @param operation what happened
 * @param table the name of the table; empty for the main table
 * @param key the key
 * @param value the new value of a put; empty for other operations
 * @param expiresAt the time of expiry of the new value; empty if the row does not expire
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
    /** The key has a new value. */
    PUT,
    /** The key was deleted. */
    DELETE,
    /** The row expired and was removed from the table. */
    EXPIRE
  }
}
