package io.nuthatch.rx;

import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Single;
import java.nio.file.Path;

/** A store in a folder of this machine, with the operations that a remote store does not have. */
public interface LocalStore extends Store {

  /**
   * Returns the folder.
   *
   * @return the folder
   */
  Path folder();

  /**
   * Keeps the newest changes of all tables for watches, from now on. The limits apply to all
   * processes until they are changed. A store that keeps changes writes each value twice: to its
   * table and to the kept changes.
   *
   * @param maxChanges maximum number of kept changes, at least 1
   * @param maxBytes maximum size of all kept changes in bytes; the newest change is kept even if it
   *     is longer
   * @return completes when the setting is committed
   */
  Completable keepChanges(long maxChanges, long maxBytes);

  /**
   * Stops keeping changes, and removes the kept ones.
   *
   * @return completes when the setting is committed
   */
  Completable keepNoChanges();

  /**
   * Makes all earlier commits durable, whatever their {@link Durability}.
   *
   * @return completes when they are safe from power failures
   */
  Completable sync();

  /**
   * Removes expired rows. Returns the number of processed entries of the expiry table.
   *
   * @return the number of processed entries
   */
  Single<Long> sweep();

  /**
   * Verifies all pages of the file. Emits the progress at intervals, at last with {@code done}
   * equal to {@code all}. Fails with {@link StoreDamagedException} at the first damage.
   *
   * @return the progress from time to time, and at the end
   */
  Flowable<Progress> verify();

  /**
   * Removes free pages from the store in a folder, by replacing its file with a compact copy. No
   * process may have the store open.
   *
   * @param folder the folder
   * @return the lengths of the file before and after
   */
  static Single<Compacted> compact(Path folder) {
    return io.nuthatch.rx.local.LocalStores.compact(folder);
  }

  /**
   * The progress of an operation.
   *
   * @param done number of pages that are done
   * @param all number of all pages
   */
  record Progress(long done, long all) {}

  /**
   * The result of a compaction.
   *
   * @param beforeBytes length of the file before, in bytes
   * @param afterBytes length of the file after, in bytes
   */
  record Compacted(long beforeBytes, long afterBytes) {}
}
