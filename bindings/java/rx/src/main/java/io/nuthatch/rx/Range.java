package io.nuthatch.rx;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;
import java.util.Optional;

/**
 * A range of keys, with each bound included, excluded or absent. A range whose start is above its
 * end has no keys. {@code testdata/store/ranges.csv} has all combinations.
 *
 * @param start the lower bound; empty for none
 * @param end the upper bound; empty for none
 */
public record Range(Optional<Bound> start, Optional<Bound> end) {

  private static final Range ALL = new Range(Optional.empty(), Optional.empty());

  /**
   * A bound of a range.
   *
   * @param key the key; may be empty
   * @param included whether the range includes the key
   */
  public record Bound(byte[] key, boolean included) {
    /** Checks that the key is not null. */
    public Bound {
      Objects.requireNonNull(key, "key");
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Bound bound
          && included == bound.included
          && Arrays.equals(key, bound.key);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(key) * 2 + (included ? 1 : 0);
    }

    @Override
    public String toString() {
      return HexFormat.of().formatHex(key) + (included ? " included" : " excluded");
    }
  }

  /** Checks that both bounds are not null. */
  public Range {
    Objects.requireNonNull(start, "start");
    Objects.requireNonNull(end, "end");
  }

  /**
   * Returns the range of all keys.
   *
   * @return the range
   */
  public static Range all() {
    return ALL;
  }

  /**
   * Returns the range from one key to another, both included.
   *
   * @param from the first key
   * @param to the last key
   * @return the range
   */
  public static Range closed(byte[] from, byte[] to) {
    return ALL.from(from).to(to);
  }

  /**
   * Returns the range of all keys that begin with a prefix.
   *
   * @param prefix the prefix
   * @return the range
   */
  public static Range prefix(byte[] prefix) {
    var from = ALL.from(prefix.clone());
    int last = prefix.length - 1;
    while (last >= 0 && prefix[last] == (byte) 0xff) {
      last--;
    }
    if (last < 0) {
      return from;
    }
    var after = Arrays.copyOf(prefix, last + 1);
    after[last]++;
    return from.before(after);
  }

  /**
   * Returns this range with the lower bound {@code key}, included.
   *
   * @param key the key
   * @return the changed range
   */
  public Range from(byte[] key) {
    return new Range(Optional.of(new Bound(key, true)), end);
  }

  /**
   * Returns this range with the lower bound {@code key}, excluded.
   *
   * @param key the key
   * @return the changed range
   */
  public Range after(byte[] key) {
    return new Range(Optional.of(new Bound(key, false)), end);
  }

  /**
   * Returns this range with the upper bound {@code key}, included.
   *
   * @param key the key
   * @return the changed range
   */
  public Range to(byte[] key) {
    return new Range(start, Optional.of(new Bound(key, true)));
  }

  /**
   * Returns this range with the upper bound {@code key}, excluded.
   *
   * @param key the key
   * @return the changed range
   */
  public Range before(byte[] key) {
    return new Range(start, Optional.of(new Bound(key, false)));
  }

  /**
   * Returns the intersection of two ranges.
   *
   * @param other the other range
   * @return the intersection
   */
  public Range and(Range other) {
    return new Range(tighter(start, other.start, 1), tighter(end, other.end, -1));
  }

  /**
   * Returns whether a key is in the range.
   *
   * @param key the key
   * @return whether it is in the range
   */
  public boolean contains(byte[] key) {
    return isWithin(start, key, 1) && isWithin(end, key, -1);
  }

  private static boolean isWithin(Optional<Bound> bound, byte[] key, int sign) {
    if (bound.isEmpty()) {
      return true;
    }
    int order = Arrays.compareUnsigned(key, bound.get().key) * sign;
    return order > 0 || order == 0 && bound.get().included;
  }

  private static Optional<Bound> tighter(Optional<Bound> one, Optional<Bound> other, int sign) {
    if (one.isEmpty() || other.isEmpty()) {
      return one.isEmpty() ? other : one;
    }
    int order = Arrays.compareUnsigned(one.get().key, other.get().key) * sign;
    boolean first = order > 0 || order == 0 && !one.get().included;
    return first ? one : other;
  }
}
