package io.nuthatch.rx;

import java.util.Objects;
import java.util.Optional;

/**
 * Which changes to watch, and where to begin.
 *
 * @param table the table; empty for all tables
 * @param range the keys
 * @param start where the watch begins
 */
public record Watch(Optional<Table> table, Range range, Start start) {

  /** Where a watch begins. */
  public sealed interface Start {}

  /** With the next change that is committed after the subscription. */
  public record Now() implements Start {}

  /** With the oldest kept change. */
  public record Oldest() implements Start {}

  /**
   * After the change with this sequence number.
   *
   * @param sequence the sequence number of that change
   */
  public record After(long sequence) implements Start {}

  /** Checks that no component is null. */
  public Watch {
    Objects.requireNonNull(table, "table");
    Objects.requireNonNull(range, "range");
    Objects.requireNonNull(start, "start");
  }

  /**
   * Returns a watch of the changes of all tables, from now on.
   *
   * @return the watch
   */
  public static Watch all() {
    return new Watch(Optional.empty(), Range.all(), new Now());
  }

  /**
   * Returns a watch of the changes of a table, from now on.
   *
   * @param table the table
   * @return the watch
   */
  public static Watch of(Table table) {
    return new Watch(Optional.of(table), Range.all(), new Now());
  }

  /**
   * Limits the watch to the keys of a range.
   *
   * @param keys the keys
   * @return the changed watch
   */
  public Watch range(Range keys) {
    return new Watch(table, keys, start);
  }

  /**
   * Begins after the change with this sequence number: {@link Change#sequence}, {@link
   * Written#sequence} or {@link StoreStat#sequence}.
   *
   * @param sequence the sequence number of that change: {@link Change#sequence}, {@link
   *     Written#sequence} or {@link StoreStat#sequence}
   * @return the changed watch
   */
  public Watch after(long sequence) {
    return new Watch(table, range, new After(sequence));
  }

  /**
   * Begins with the oldest kept change.
   *
   * @return the changed watch
   */
  public Watch fromOldest() {
    return new Watch(table, range, new Oldest());
  }
}
