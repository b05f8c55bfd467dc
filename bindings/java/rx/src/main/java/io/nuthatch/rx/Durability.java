package io.nuthatch.rx;

/**
 * What a commit waits for, and so what a power failure or a kernel crash may lose. A process that
 * is killed loses no commits with any durability.
 */
public enum Durability {
  /** Nothing that was committed is lost. */
  SYNC,
  /**
   * The last commit may be lost, even if it was acknowledged. Earlier ones are not, and the store
   * is undamaged.
   */
  GROUP,
  /** Any number of the last commits may be lost, and the store may be damaged. */
  NONE
}
