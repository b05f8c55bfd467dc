package io.nuthatch.rx;

/** What a table keeps with each value. */
public enum Kind {
  /** Nothing: values lie in the file as they are, and any program of LMDB reads them. */
  PLAIN,
  /** A version, and a time at which the row expires, if it does. */
  STAMPED
}
