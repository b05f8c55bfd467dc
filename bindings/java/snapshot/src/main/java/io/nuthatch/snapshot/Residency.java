package io.nuthatch.snapshot;

/** Where the bytes of an open snapshot are. */
public enum Residency {
  /**
   * Mapped from the page cache and read on demand. Opening reads little more than the header, and
   * all processes share the memory.
   */
  MAPPED,
  /** Mapped as with {@link #MAPPED}, but {@code open} reads every page before it returns. */
  POPULATED,
  /**
   * Copied into memory of this process, outside the Java heap, before {@code open} returns. The
   * copy is independent of later changes to the file: no access fails if the file is truncated. A
   * file that is too large for the memory cannot be opened: the code is {@code io}.
   */
  COPIED
}
