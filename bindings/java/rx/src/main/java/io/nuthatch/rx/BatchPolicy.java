package io.nuthatch.rx;

import java.time.Duration;

/**
 * How a stream of items is written.
 *
 * @param groupItems number of items that are committed together or not at all: if one fails, all of
 *     its group fail. With 1, each item fails alone
 * @param linger maximum time that a group waits for more items
 * @param inFlight maximum number of requested items that are not acknowledged yet
 */
public record BatchPolicy(int groupItems, Duration linger, int inFlight) {

  private static final BatchPolicy DEFAULTS = new BatchPolicy(1, Duration.ZERO, 4096);

  /** Checks the numbers. */
  public BatchPolicy {
    StoreException.check(groupItems > 0, "groupItems", "1 or more", groupItems);
    StoreException.check(inFlight > 0, "inFlight", "1 or more", inFlight);
    StoreException.check(!linger.isNegative(), "linger", "no negative time", linger);
  }

  /**
   * Returns the default policy: each item fails alone, and up to 4096 items are in flight. Items
   * that arrive while a commit is in progress share the next commit.
   *
   * @return the default policy
   */
  public static BatchPolicy defaults() {
    return DEFAULTS;
  }

  /**
   * Sets the maximum number of items in a group, and the maximum time that a group waits for more
   * items. A group has at least one item. Raises {@code inFlight} to {@code items} if it is lower.
   *
   * @param items maximum number of items of a group
   * @param time how long a group waits for more items
   * @return the changed policy
   */
  public BatchPolicy groups(int items, Duration time) {
    return new BatchPolicy(items, time, Math.max(inFlight, items));
  }

  /**
   * Sets the maximum number of requested items that are not acknowledged yet; 4096 by default.
   *
   * @param items maximum number of items that are requested before they are acknowledged
   * @return the changed policy
   */
  public BatchPolicy inFlight(int items) {
    return new BatchPolicy(groupItems, linger, items);
  }
}
