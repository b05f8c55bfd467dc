package io.nuthatch.rx;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * Writes and conditions that happen together or not at all, in order.
 *
 * <pre>{@code
 * store.write(new Batch()
 *     .check(users, key, Condition.absent())
 *     .put(users, key, value)
 *     .delete(drafts, key));
 * }</pre>
 *
 * <p>It is filled by one thread, and not changed when it was handed over.
 */
public final class Batch {

  private final List<Write> writes = new ArrayList<>(1);

  /** A batch without writes. */
  public Batch() {}

  /** One operation of a batch, on a table of the store that the batch is handed to. */
  public sealed interface Write {
    /** The table. */
    Table table();
  }

  /** Writes a value; {@code expiresAt} is empty for never. */
  public record Put(Table table, byte[] key, byte[] value, Optional<Instant> expiresAt)
      implements Write {
    /** Checks that all is there. */
    public Put {
      Objects.requireNonNull(table, "table");
      Objects.requireNonNull(key, "key");
      Objects.requireNonNull(value, "value");
    }
  }

  /** Deletes a key, if it is there. */
  public record Delete(Table table, byte[] key) implements Write {
    /** Checks that all is there. */
    public Delete {
      Objects.requireNonNull(table, "table");
      Objects.requireNonNull(key, "key");
    }
  }

  /** Deletes all keys of a range. */
  public record DeleteRange(Table table, Range range) implements Write {
    /** Checks that all is there. */
    public DeleteRange {
      Objects.requireNonNull(table, "table");
      Objects.requireNonNull(range, "range");
    }
  }

  /** Has nothing of the batch happen unless a condition holds. Writes before it count. */
  public record Check(Table table, byte[] key, Condition condition) implements Write {
    /** Checks that all is there. */
    public Check {
      Objects.requireNonNull(table, "table");
      Objects.requireNonNull(key, "key");
      Objects.requireNonNull(condition, "condition");
    }
  }

  /** Writes a value under a key. */
  public Batch put(Table table, byte[] key, byte[] value) {
    writes.add(new Put(table, key, value, Optional.empty()));
    return this;
  }

  /** Writes a value that expires at a time. The table must be stamped. */
  public Batch put(Table table, byte[] key, byte[] value, Instant expiresAt) {
    writes.add(new Put(table, key, value, Optional.of(expiresAt)));
    return this;
  }

  /** Deletes a key, if it is there. */
  public Batch delete(Table table, byte[] key) {
    writes.add(new Delete(table, key));
    return this;
  }

  /** Deletes all keys of a range. */
  public Batch deleteRange(Table table, Range range) {
    writes.add(new DeleteRange(table, range));
    return this;
  }

  /** Has nothing of the batch happen unless a condition holds. Writes before it count. */
  public Batch check(Table table, byte[] key, Condition condition) {
    writes.add(new Check(table, key, condition));
    return this;
  }

  /** Adds all that is in another batch. */
  public Batch add(Batch other) {
    writes.addAll(other.writes);
    return this;
  }

  /** The writes and conditions in order. */
  public List<Write> writes() {
    return Collections.unmodifiableList(writes);
  }
}
