package io.nuthatch.rx.local;

import io.nuthatch.rx.LocalStore;
import io.nuthatch.rx.StoreOptions;
import io.reactivex.rxjava3.core.Single;
import java.nio.file.Path;

/** Opens stores of this machine. */
public final class LocalStores {

  private LocalStores() {}

  /** Opens the store in a folder. */
  public static LocalStore open(Path folder, StoreOptions options) {
    throw new UnsupportedOperationException();
  }

  /** Makes the store in a folder as small as it can be. */
  public static Single<LocalStore.Compacted> compact(Path folder) {
    throw new UnsupportedOperationException();
  }
}
