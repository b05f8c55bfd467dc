package io.nuthatch.rx.local;

import io.nuthatch.rx.StoreException;

/** Something of a store that fails when the store is closed. */
interface Running {

  /** Fails it, on whatever thread this is. */
  void fail(StoreException failure);
}
