package io.nuthatch.rx;

/**
 * What a commit waits for, told by what a machine that loses power may lose. A process that is
 * killed loses nothing that was committed.
 */
public enum Durability {
  /** Nothing is lost. */
  SYNC,
  /** The last commit may be lost, none before it, and the store is whole. */
  GROUP,
  /** Any number of the last commits may be lost, and the store may be damaged. */
  NONE
}
