package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.LocalStore;
import io.nuthatch.rx.StoreOptions;
import io.reactivex.rxjava3.core.Single;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Opens and compacts local stores. */
public final class LocalStores {

  private LocalStores() {}

  /** Opens the store in a folder. */
  public static LocalStore open(Path folder, StoreOptions options) {
    return new OpenStore(folder, options);
  }

  /** Compacts the store in a folder. */
  public static Single<LocalStore.Compacted> compact(Path folder) {
    return Single.fromCallable(
        () -> {
          var scratch = Scratch.ofThread();
          var path = scratch.copy(folder.toString().getBytes(StandardCharsets.UTF_8));
          var out = scratch.take(16);
          Native.compact(path, path.byteSize(), out, out.asSlice(8), scratch);
          return new LocalStore.Compacted(out.get(JAVA_LONG, 0), out.get(JAVA_LONG, 8));
        });
  }
}
