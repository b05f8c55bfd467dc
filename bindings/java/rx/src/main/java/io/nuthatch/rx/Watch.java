package io.nuthatch.rx;

import java.util.Objects;
import java.util.Optional;

/**
 * Which changes are watched, and from where on.
 *
 * @param table those of this table; empty for all tables
 * @param range those of keys of this range
 * @param start where it begins
 */
public record Watch(Optional<Table> table, Range range, Start start) {

  /** Where a watch begins. */
  public sealed interface Start {}

  /** With the next change that is committed after the subscription. */
  public record Now() implements Start {}

  /** With the oldest change that is kept. */
  public record Oldest() implements Start {}

  /** With the change after the one of this number. */
  public record After(long sequence) implements Start {}

  /** Checks that all is there. */
  public Watch {
    Objects.requireNonNull(table, "table");
    Objects.requireNonNull(range, "range");
    Objects.requireNonNull(start, "start");
  }

  /** The changes of all tables from now on. */
  public static Watch all() {
    return new Watch(Optional.empty(), Range.all(), new Now());
  }

  /** The changes of a table from now on. */
  public static Watch of(Table table) {
    return new Watch(Optional.of(table), Range.all(), new Now());
  }

  /** The changes of keys of this range. */
  public Watch range(Range keys) {
    return new Watch(table, keys, start);
  }

  /**
   * From the change after the one of this number: that of {@link Change#sequence}, {@link
   * Written#sequence} or {@link StoreStat#sequence}.
   */
  public Watch after(long sequence) {
    return new Watch(table, range, new After(sequence));
  }

  /** From the oldest change that is kept. */
  public Watch fromOldest() {
    return new Watch(table, range, new Oldest());
  }
}
