package io.nuthatch.rx;

import java.time.Duration;
import java.util.OptionalLong;

/**
 * Options for opening a local store.
 *
 * @param create whether to create the store if it does not exist; the parent of its folder must
 *     exist
 * @param readOnly whether to open the store for reading only; writes fail with the code {@code
 *     read-only}
 * @param durability what commits wait for
 * @param reserveBytes address space of the memory map in bytes; it takes no memory and no disk
 *     space
 * @param limitBytes maximum size of the file in bytes; empty for no limit
 * @param growthPatience maximum time that a write which needs a larger map waits for open
 *     transactions
 * @param tables maximum number of open tables
 * @param readers maximum number of open read transactions in all processes; the value of the first
 *     process that opens the store applies
 * @param queueBytes maximum bytes of queued writes; further writes wait
 * @param allowNetworkFilesystem whether to open a folder on a network filesystem
 */
public record StoreOptions(
    boolean create,
    boolean readOnly,
    Durability durability,
    long reserveBytes,
    OptionalLong limitBytes,
    Duration growthPatience,
    int tables,
    int readers,
    long queueBytes,
    boolean allowNetworkFilesystem) {

  private static final StoreOptions DEFAULTS =
      new StoreOptions(
          true,
          false,
          Durability.SYNC,
          1L << 40,
          OptionalLong.empty(),
          Duration.ofSeconds(5),
          256,
          1022,
          64L << 20,
          false);

  /**
   * Returns the defaults: the store is created if it does not exist, commits are durable, and the
   * file size is not limited.
   *
   * @return the default options
   */
  public static StoreOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Sets whether to create the store if it does not exist; {@code true} by default.
   *
   * @param make whether to create it
   * @return the changed options
   */
  public StoreOptions create(boolean make) {
    return new StoreOptions(
        make, readOnly, durability, reserveBytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /**
   * Sets whether to open the store for reading only; {@code false} by default.
   *
   * @param only whether to open it for reading only
   * @return the changed options
   */
  public StoreOptions readOnly(boolean only) {
    return new StoreOptions(
        create, only, durability, reserveBytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /**
   * Sets what commits wait for; {@link Durability#SYNC} by default.
   *
   * @param wait the durability
   * @return the changed options
   */
  public StoreOptions durability(Durability wait) {
    return new StoreOptions(
        create, readOnly, wait, reserveBytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /**
   * Sets the address space of the memory map in bytes, from 64 KiB to 64 TiB; 1 TiB by default.
   *
   * @param bytes the size in bytes
   * @return the changed options
   */
  public StoreOptions reserve(long bytes) {
    return new StoreOptions(
        create, readOnly, durability, bytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /**
   * Sets the maximum size of the file in bytes, from 64 KiB to 64 TiB; no limit by default. Writes
   * beyond it fail with {@link StoreFullException}.
   *
   * @param bytes the length in bytes
   * @return the changed options
   */
  public StoreOptions limit(long bytes) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, OptionalLong.of(bytes), growthPatience, tables,
        readers, queueBytes, allowNetworkFilesystem);
  }

  /**
   * Sets the maximum time that a write which needs a larger map waits for open transactions to end;
   * 5 seconds by default.
   *
   * @param patience the time
   * @return the changed options
   */
  public StoreOptions growthPatience(Duration patience) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, patience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /**
   * Sets the maximum number of open tables, from 1 to 100,000; 256 by default.
   *
   * @param max the number
   * @return the changed options
   */
  public StoreOptions tables(int max) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, growthPatience, max, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /**
   * Sets the maximum number of open read transactions in all processes, from 1 to 100,000; 1022 by
   * default. The value of the first process that opens the store applies.
   *
   * @param max the number
   * @return the changed options
   */
  public StoreOptions readers(int max) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, growthPatience, tables, max,
        queueBytes, allowNetworkFilesystem);
  }

  /**
   * Sets the maximum bytes of queued writes; 64 MiB by default. Further writes wait.
   *
   * @param max the size in bytes
   * @return the changed options
   */
  public StoreOptions queueBytes(long max) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, growthPatience, tables, readers,
        max, allowNetworkFilesystem);
  }

  /**
   * Sets whether to open a folder on a network filesystem, such as NFS or SMB; {@code false} by
   * default. Machines do not share the memory maps of a store: if two machines write to it, it is
   * damaged without an error. Allow it only if all processes that use the store run on one machine.
   *
   * @param allow whether to allow it
   * @return the changed options
   */
  public StoreOptions allowNetworkFilesystem(boolean allow) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allow);
  }
}
