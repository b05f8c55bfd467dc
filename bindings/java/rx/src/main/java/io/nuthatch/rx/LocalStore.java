package io.nuthatch.rx;

import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Single;
import java.nio.file.Path;

/** A store in a folder of this machine, with what can only be done there. */
public interface LocalStore extends Store {

  /** The folder. */
  Path folder();

  /**
   * Keeps the last changes of all tables for watches from now on: so many at most, of so many bytes
   * altogether. That holds for all processes, until it is changed. Each change is written twice.
   */
  Completable keepChanges(long maxChanges, long maxBytes);

  /** Keeps no changes from now on, and lets go of those that are kept. */
  Completable keepNoChanges();

  /** Makes everything that was committed safe from crashes, however it was committed. */
  Completable sync();

  /** Takes rows out that have expired, and answers how many it went through. */
  Single<Long> sweep();

  /**
   * Checks all pages of the file. Tells how far it is from time to time, at last that it is done,
   * and fails with {@link StoreDamagedException} where it finds damage.
   */
  Flowable<Progress> verify();

  /**
   * Makes the store in a folder as small as it can be, in its place. No process may have it open.
   *
   * @return bytes of the file before and after
   */
  static Single<Compacted> compact(Path folder) {
    return io.nuthatch.rx.local.LocalStores.compact(folder);
  }

  /** How far a long piece of work is. */
  record Progress(long done, long all) {}

  /** Bytes of a store's file before and after it was made as small as it can be. */
  record Compacted(long beforeBytes, long afterBytes) {}
}
