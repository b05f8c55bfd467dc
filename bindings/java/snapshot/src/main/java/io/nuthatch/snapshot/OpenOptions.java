package io.nuthatch.snapshot;

import java.util.Objects;

/**
 * Options for opening a snapshot.
 *
 * @param residency where the bytes of the file are kept; {@link Residency#MAPPED} by default
 * @param verify whether to verify every byte before {@code open} returns; {@code false} by default
 */
public record OpenOptions(Residency residency, boolean verify) {

  private static final OpenOptions DEFAULTS = new OpenOptions(Residency.MAPPED, false);

  /** Checks that no option is {@code null}. */
  public OpenOptions {
    Objects.requireNonNull(residency, "residency");
  }

  /**
   * Returns the defaults.
   *
   * @return the default options
   */
  public static OpenOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Sets where the bytes of the file are kept.
   *
   * @param place the residency
   * @return the changed options
   */
  public OpenOptions residency(Residency place) {
    return new OpenOptions(place, verify);
  }

  /**
   * Sets whether to verify every byte before {@code open} returns.
   *
   * @param all whether to verify
   * @return the changed options
   */
  public OpenOptions verify(boolean all) {
    return new OpenOptions(residency, all);
  }
}
