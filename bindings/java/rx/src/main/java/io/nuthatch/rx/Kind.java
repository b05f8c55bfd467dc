package io.nuthatch.rx;

/** What a table stores with each value. */
public enum Kind {
  /** Nothing: values are stored unchanged, and any LMDB program can read them. */
  PLAIN,
  /** A version and an optional time of expiry. */
  STAMPED
}
