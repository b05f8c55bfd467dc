package io.nuthatch.rx;

import java.time.Duration;
import java.util.OptionalLong;

/**
 * How a store of this machine is opened.
 *
 * @param create whether a store is made where there is none; the folder above must be there
 * @param readOnly for reading only: nothing of the data changes, and writes fail
 * @param durability what commits wait for
 * @param reserveBytes addresses for the map; they cost nothing until there is data
 * @param limitBytes the most that the file may grow to; empty for no limit
 * @param growthPatience how long a map that must move waits for transactions to end
 * @param tables how many tables can be open
 * @param readers how many read transactions can be open in all processes
 * @param queueBytes how many bytes of writes can wait; who writes more waits, too
 * @param allowNetworkFilesystem whether a folder on a network filesystem may be opened
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

  /** A store that is made where there is none, with durable commits and no limit. */
  public static StoreOptions defaults() {
    return DEFAULTS;
  }

  /** Whether a store is made where there is none. */
  public StoreOptions create(boolean make) {
    return new StoreOptions(
        make, readOnly, durability, reserveBytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /** Opens for reading only. */
  public StoreOptions readOnly(boolean only) {
    return new StoreOptions(
        create, only, durability, reserveBytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /** What commits wait for. */
  public StoreOptions durability(Durability wait) {
    return new StoreOptions(
        create, readOnly, wait, reserveBytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /** Addresses for the map, from 64 KiB to 64 TiB; 1 TiB by default. */
  public StoreOptions reserve(long bytes) {
    return new StoreOptions(
        create, readOnly, durability, bytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /** The most that the file may grow to. Writes fail with {@link StoreFullException} beyond. */
  public StoreOptions limit(long bytes) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, OptionalLong.of(bytes), growthPatience, tables,
        readers, queueBytes, allowNetworkFilesystem);
  }

  /** How long a map that must move waits for transactions to end; 5 seconds by default. */
  public StoreOptions growthPatience(Duration patience) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, patience, tables, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /** How many tables can be open; 256 by default. */
  public StoreOptions tables(int most) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, growthPatience, most, readers,
        queueBytes, allowNetworkFilesystem);
  }

  /** How many read transactions can be open in all processes; 1022 by default. */
  public StoreOptions readers(int most) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, growthPatience, tables, most,
        queueBytes, allowNetworkFilesystem);
  }

  /** How many bytes of writes can wait; 64 MiB by default. */
  public StoreOptions queueBytes(long most) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, growthPatience, tables, readers,
        most, allowNetworkFilesystem);
  }

  /**
   * Sets whether a folder on a network filesystem, such as NFS or SMB, may be opened; {@code false}
   * by default. Machines do not share the memory maps of a store, so that one which two machines
   * write to is damaged without an error. Allow it only if processes of one machine use the store.
   */
  public StoreOptions allowNetworkFilesystem(boolean allow) {
    return new StoreOptions(
        create, readOnly, durability, reserveBytes, limitBytes, growthPatience, tables, readers,
        queueBytes, allow);
  }
}
