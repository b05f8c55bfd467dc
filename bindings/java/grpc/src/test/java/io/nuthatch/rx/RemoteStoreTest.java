package io.nuthatch.rx;

import java.nio.file.Path;

/** What holds of every store, of one of another machine. */
class RemoteStoreTest extends StoreContract {

  private Served served;

  @Override
  Store start(Path folder) throws Exception {
    served = Served.start(folder);
    return Store.connect(served.address);
  }

  @Override
  void stop() throws Exception {
    served.close();
  }
}
