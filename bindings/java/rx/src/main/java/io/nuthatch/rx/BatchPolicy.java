package io.nuthatch.rx;

import java.time.Duration;

/**
 * How the items of a stream are written.
 *
 * @param groupItems how many items happen together: 1 for each by itself; more for so many as a
 *     whole or not at all, so that where one fails all of its group do
 * @param linger how long a group waits to become so large
 * @param inFlight how many items are asked for before they are acknowledged, at most
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
   * Each item by itself, and up to 4096 of them in flight. They share commits as far as they come
   * while another one is under way.
   */
  public static BatchPolicy defaults() {
    return DEFAULTS;
  }

  /** Up to so many items happen together; those that come within the time, at least one. */
  public BatchPolicy groups(int items, Duration time) {
    return new BatchPolicy(items, time, Math.max(inFlight, items));
  }

  /** So many items are asked for before they are acknowledged, at most. */
  public BatchPolicy inFlight(int items) {
    return new BatchPolicy(groupItems, linger, items);
  }
}
