package io.nuthatch.rx;

import java.nio.file.Path;

/** What holds of every store, of one in the process. */
class LocalStoreTest extends StoreContract {

  @Override
  Store start(Path folder) {
    var opened = Store.open(folder, StoreOptions.defaults().durability(Durability.NONE));
    opened.keepChanges(10_000, 1 << 20).blockingAwait();
    return opened;
  }

  @Override
  void stop() {}
}
