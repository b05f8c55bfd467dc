package io.nuthatch.snapshot;

import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;

/**
 * Statistics of a snapshot, from the headers of its files. The names are those of {@code nuthatch
 * info --json}, in camel case. For a set they are sums, unless stated otherwise.
 *
 * @param versionMajor major version of the format
 * @param versionMinor minor version of the format; the highest of all shards
 * @param shards number of shards; 0 for a file that was opened without a manifest
 * @param fileBytes length of the file in bytes, without the manifest
 * @param entries number of entries
 * @param keyBytes sum of the lengths of all keys in bytes
 * @param valueBytes sum of the lengths of all values in bytes, decompressed
 * @param storedValueBytes sum of the lengths of all stored values in bytes; a shared value counts
 *     once
 * @param sharedEntries number of entries that refer to the value of another entry
 * @param compressedEntries number of entries whose value is compressed
 * @param dictionaryBytes length of the dictionary in bytes
 * @param indexBytes length of the index in bytes
 * @param dataBytes length of the data section in bytes
 * @param partitions number of partitions
 * @param lines number of lines of the index
 * @param maxProbe maximum number of lines from the home line of a key to its line; the maximum of
 *     all shards
 * @param seed seed of the key hash, unsigned; the same in all shards
 * @param entriesByType number of entries of each type that occurs, in the order of the types
 */
public record Stats(
    int versionMajor,
    int versionMinor,
    int shards,
    long fileBytes,
    long entries,
    long keyBytes,
    long valueBytes,
    long storedValueBytes,
    long sharedEntries,
    long compressedEntries,
    long dictionaryBytes,
    long indexBytes,
    long dataBytes,
    long partitions,
    long lines,
    int maxProbe,
    long seed,
    Map<ValueType, Long> entriesByType) {

  /** Makes the map of types unmodifiable. */
  public Stats {
    entriesByType = Collections.unmodifiableMap(copy(entriesByType));
  }

  /** Copies a map, which may be empty. */
  private static Map<ValueType, Long> copy(Map<ValueType, Long> counts) {
    var copy = new EnumMap<ValueType, Long>(ValueType.class);
    copy.putAll(counts);
    return copy;
  }

  static Stats of(SnapshotFile[] files, int shards) {
    var stats = of(files[0].header, shards);
    for (int i = 1; i < files.length; i++) {
      stats = stats.plus(of(files[i].header, shards));
    }
    return stats;
  }

  private static Stats of(Header header, int shards) {
    var byType = new EnumMap<ValueType, Long>(ValueType.class);
    for (var type : ValueType.values()) {
      long count = header.entriesByType[type.code()];
      if (count > 0) {
        byType.put(type, count);
      }
    }
    return new Stats(
        Layout.VERSION_MAJOR,
        header.versionMinor,
        shards,
        header.fileLength,
        header.entries,
        header.keyBytes,
        header.valueBytes,
        header.storedValueBytes,
        header.sharedEntries,
        header.compressedEntries,
        header.dictionary.length(),
        header.index.length(),
        header.data.length(),
        header.partitions(),
        header.lines(),
        header.maxProbe,
        header.seed,
        byType);
  }

  private Stats plus(Stats other) {
    var byType = copy(entriesByType);
    other.entriesByType.forEach((type, count) -> byType.merge(type, count, Long::sum));
    return new Stats(
        versionMajor,
        Math.max(versionMinor, other.versionMinor),
        shards,
        fileBytes + other.fileBytes,
        entries + other.entries,
        keyBytes + other.keyBytes,
        valueBytes + other.valueBytes,
        storedValueBytes + other.storedValueBytes,
        sharedEntries + other.sharedEntries,
        compressedEntries + other.compressedEntries,
        dictionaryBytes + other.dictionaryBytes,
        indexBytes + other.indexBytes,
        dataBytes + other.dataBytes,
        partitions + other.partitions,
        lines + other.lines,
        Math.max(maxProbe, other.maxProbe),
        seed,
        byType);
  }
}
