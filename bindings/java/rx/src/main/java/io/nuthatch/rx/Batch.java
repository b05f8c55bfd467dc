package io.nuthatch.rx;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * Writes and conditions that are committed together or not at all, in order.
 *
 * <pre>{@code
 * store.write(new Batch()
 *     .check(users, key, Condition.absent())
 *     .put(users, key, value)
 *     .delete(drafts, key));
 * }</pre>
 *
 * <p>One thread fills a batch. It must not be changed after it was submitted.
 */
public final class Batch {

  private final List<Write> writes = new ArrayList<>(1);

  /** Creates an empty batch. */
  public Batch() {}

  /** One operation of a batch, on a table of the store that commits the batch. */
  public sealed interface Write {
    /**
     * Returns the table.
     *
     * @return the table
     */
    Table table();
  }

  /**
   * Writes a value.
   *
   * @param table the table
   * @param key the key
   * @param value the value
   * @param expiresAt the time of expiry; empty if the row does not expire
   */
  public record Put(Table table, byte[] key, byte[] value, Optional<Instant> expiresAt)
      implements Write {
    /** Checks that no component is null. */
    public Put {
      Objects.requireNonNull(table, "table");
      Objects.requireNonNull(key, "key");
      Objects.requireNonNull(value, "value");
    }
  }

  /**
   * Deletes a key, if it exists.
   *
   * @param table the table
   * @param key the key
   */
  public record Delete(Table table, byte[] key) implements Write {
    /** Checks that no component is null. */
    public Delete {
      Objects.requireNonNull(table, "table");
      Objects.requireNonNull(key, "key");
    }
  }

  /**
   * Deletes all keys of a range.
   *
   * @param table the table
   * @param range the keys
   */
  public record DeleteRange(Table table, Range range) implements Write {
    /** Checks that no component is null. */
    public DeleteRange {
      Objects.requireNonNull(table, "table");
      Objects.requireNonNull(range, "range");
    }
  }

  /**
   * Cancels the whole batch unless the key meets a condition, evaluated after the preceding writes
   * of the batch.
   *
   * @param table the table
   * @param key the key
   * @param condition the condition
   */
  public record Check(Table table, byte[] key, Condition condition) implements Write {
    /** Checks that no component is null. */
    public Check {
      Objects.requireNonNull(table, "table");
      Objects.requireNonNull(key, "key");
      Objects.requireNonNull(condition, "condition");
    }
  }

  /**
   * Adds a write of a value.
   *
   * @param table the table
   * @param key the key
   * @param value the value
   * @return this batch
   */
  public Batch put(Table table, byte[] key, byte[] value) {
    writes.add(new Put(table, key, value, Optional.empty()));
    return this;
  }

  /**
   * Adds a write of a value that expires at a time. The table must be stamped.
   *
   * @param table the table
   * @param key the key
   * @param value the value
   * @param expiresAt the time of expiry
   * @return this batch
   */
  public Batch put(Table table, byte[] key, byte[] value, Instant expiresAt) {
    writes.add(new Put(table, key, value, Optional.of(expiresAt)));
    return this;
  }

  /**
   * Adds the deletion of a key. The key does not have to exist.
   *
   * @param table the table
   * @param key the key
   * @return this batch
   */
  public Batch delete(Table table, byte[] key) {
    writes.add(new Delete(table, key));
    return this;
  }

  /**
   * Adds the deletion of all keys of a range.
   *
   * @param table the table
   * @param range the keys
   * @return this batch
   */
  public Batch deleteRange(Table table, Range range) {
    writes.add(new DeleteRange(table, range));
    return this;
  }

  /**
   * Adds a condition. If it is not met, nothing of the batch is written. It sees the preceding
   * writes of the batch.
   *
   * @param table the table
   * @param key the key
   * @param condition the condition
   * @return this batch
   */
  public Batch check(Table table, byte[] key, Condition condition) {
    writes.add(new Check(table, key, condition));
    return this;
  }

  /**
   * Adds all writes and conditions of another batch.
   *
   * @param other the other batch
   * @return this batch
   */
  public Batch add(Batch other) {
    writes.addAll(other.writes);
    return this;
  }

  /**
   * Returns the writes and conditions, in order. The list cannot be changed.
   *
   * @return an unmodifiable view
   */
  public List<Write> writes() {
    return Collections.unmodifiableList(writes);
  }
}
