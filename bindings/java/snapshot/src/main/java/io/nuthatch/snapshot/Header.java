package io.nuthatch.snapshot;

import io.nuthatch.snapshot.Layout.Additional;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** The header of a file. {@link HeaderCheck} checks it. */
final class Header {

  final int versionMinor;
  final long fileLength;
  final long seed;
  final long entries;
  final int partitionBits;
  final long linesPerPartition;
  final int maxProbe;
  final int flags;
  final Section dictionary;
  final Section directory;
  final Section index;
  final Section data;
  final long dictionaryHash;
  final long directoryHash;
  final long keyBytes;
  final long valueBytes;
  final long storedValueBytes;
  final long sharedEntries;
  final long compressedEntries;
  final long[] entriesByType = new long[16];
  final int shard;
  final int shards;
  final List<Section.Additional> additional = new ArrayList<>();
  final long hash;

  /** Decodes a header of 512 bytes whose {@code additional_count} is valid. */
  Header(ByteBuffer bytes) {
    versionMinor = bytes.getShort(Layout.Header.VERSION_MINOR) & 0xFFFF;
    fileLength = bytes.getLong(Layout.Header.FILE_LEN);
    seed = bytes.getLong(Layout.Header.SEED);
    entries = bytes.getLong(Layout.Header.ENTRIES);
    partitionBits = bytes.getInt(Layout.Header.PARTITION_BITS);
    linesPerPartition = Integer.toUnsignedLong(bytes.getInt(Layout.Header.LINES_PER_PARTITION));
    maxProbe = bytes.getInt(Layout.Header.MAX_PROBE);
    flags = bytes.getInt(Layout.Header.FLAGS);
    dictionary = section(bytes, Layout.Header.SECTIONS);
    directory = section(bytes, Layout.Header.SECTIONS + 16);
    index = section(bytes, Layout.Header.SECTIONS + 32);
    data = section(bytes, Layout.Header.SECTIONS + 48);
    dictionaryHash = bytes.getLong(Layout.Header.DICTIONARY_HASH);
    directoryHash = bytes.getLong(Layout.Header.DIRECTORY_HASH);
    keyBytes = bytes.getLong(Layout.Header.KEY_BYTES);
    valueBytes = bytes.getLong(Layout.Header.VALUE_BYTES);
    storedValueBytes = bytes.getLong(Layout.Header.STORED_VALUE_BYTES);
    sharedEntries = bytes.getLong(Layout.Header.SHARED_ENTRIES);
    compressedEntries = bytes.getLong(Layout.Header.COMPRESSED_ENTRIES);
    for (int code = 0; code < entriesByType.length; code++) {
      entriesByType[code] = bytes.getLong(Layout.Header.ENTRIES_BY_TYPE + 8 * code);
    }
    shard = bytes.getInt(Layout.Header.SHARD);
    shards = bytes.getInt(Layout.Header.SHARDS);
    int count = bytes.getInt(Layout.Header.ADDITIONAL_COUNT);
    for (int i = 0; i < count; i++) {
      int entry = Layout.Header.ADDITIONAL + Additional.LENGTH * i;
      var part = section(bytes, entry + Additional.SECTION);
      long checksum = bytes.getLong(entry + Additional.CHECKSUM);
      additional.add(new Section.Additional(entry, bytes.getInt(entry), part, checksum));
    }
    hash = bytes.getLong(Layout.Header.HASH);
  }

  private static Section section(ByteBuffer bytes, int at) {
    return new Section(bytes.getLong(at), bytes.getLong(at + 8));
  }

  long partitions() {
    return 1L << partitionBits;
  }

  long lines() {
    return linesPerPartition << partitionBits;
  }

  boolean hasDictionary() {
    return (flags & Layout.FLAG_DICTIONARY) != 0;
  }
}
