package io.nuthatch.rx.local;

import io.nuthatch.rx.StoreException;

/** A stream that fails when its store is closed. */
interface Running {

  /** Fails the stream, on the calling thread. */
  void fail(StoreException failure);
}
