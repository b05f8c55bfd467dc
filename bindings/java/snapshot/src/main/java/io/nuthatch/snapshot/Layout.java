package io.nuthatch.snapshot;

import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** The offsets, lengths and limits of {@code docs/formats/snapshot.md}. */
final class Layout {

  static final ValueLayout.OfShort U16 =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfInt U32 =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfLong U64 =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfDouble F64 =
      ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfFloat F32 =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  static final long MAGIC = 0x0A1A0A0D54554E89L;
  static final long MANIFEST_MAGIC = 0x0A1A0A0D53554E89L;
  static final int VERSION_MAJOR = 1;
  static final int SECTION_ALIGN = 64;

  static final int FLAG_COMPRESSED = 1;
  static final int FLAG_DICTIONARY = 2;
  static final int FLAG_SHARED = 4;

  static final long MAX_FILE = 1L << 48;
  static final long MAX_VALUE = 1L << 32;
  static final int MAX_KEY = 65_535;
  static final int MAX_CONTENT = 1 << 24;
  static final int MAX_DICTIONARY = 1 << 20;
  static final int MAX_METADATA = 1 << 20;
  static final int MAX_SHARDS = 1 << 16;
  static final int MAX_PROBE = 255;
  static final int MAX_SHIFT = 24;
  static final int MAX_PARTITION_BITS = 28;
  static final int MAX_ADDITIONAL = 4;

  /** The header of a file. */
  static final class Header {
    static final int LENGTH = 512;
    static final int VERSION_MAJOR = 8;
    static final int VERSION_MINOR = 10;
    static final int HEADER_LEN = 12;
    static final int FILE_LEN = 16;
    static final int SEED = 24;
    static final int ENTRIES = 32;
    static final int PARTITION_BITS = 40;
    static final int LINES_PER_PARTITION = 44;
    static final int MAX_PROBE = 48;
    static final int FLAGS = 52;
    static final int SECTIONS = 56;
    static final int DICTIONARY_HASH = 120;
    static final int DIRECTORY_HASH = 128;
    static final int KEY_BYTES = 136;
    static final int VALUE_BYTES = 144;
    static final int STORED_VALUE_BYTES = 152;
    static final int SHARED_ENTRIES = 160;
    static final int COMPRESSED_ENTRIES = 168;
    static final int ENTRIES_BY_TYPE = 176;
    static final int INDEX_KIND = 304;
    static final int SHARD = 308;
    static final int SHARDS = 312;
    static final int ADDITIONAL_COUNT = 316;
    static final int ADDITIONAL = 320;
    static final int RESERVED = 448;
    static final int HASH = 504;

    private Header() {}
  }

  /** The entry of an additional section in the header. */
  static final class Additional {
    static final int LENGTH = 32;
    static final int REQUIRED = 4;
    static final int SECTION = 8;
    static final int SECTION_LENGTH = 16;
    static final int CHECKSUM = 24;
    static final int METADATA = 1;

    private Additional() {}
  }

  /** The manifest of a set. */
  static final class Manifest {
    static final int LENGTH = 96;
    static final int SHARDS = 40;
    static final int FLAGS = 44;
    static final int METADATA_LEN = 48;
    static final int TABLE_HASH = 56;
    static final int METADATA_HASH = 64;
    static final int RESERVED = 72;
    static final int HASH = 88;
    static final int ENTRY = 24;

    private Manifest() {}
  }

  /** An entry of the directory. */
  static final class Directory {
    static final int LENGTH = 32;
    static final int DATA_LEN = 8;
    static final int INDEX_HASH = 16;
    static final int DATA_HASH = 24;

    private Directory() {}
  }

  /** A line of the index. */
  static final class Line {
    static final int LENGTH = 64;
    static final int SLOTS = 14;
    static final int OFFSETS = 28;
    static final int SHIFT = 56;

    private Line() {}
  }

  /** A record. */
  static final class Record {
    static final int SHORT_HEAD = 3;
    static final int LONG_HEAD = 8;
    static final int REFERENCE = 6;
    static final int TYPE_MASK = 15;
    static final int LONG = 16;
    static final int SHARED = 32;
    static final int COMPRESSED = 64;
    static final int RESERVED = 128;

    /** Maximum length of a short record. */
    static final int MAX_SHORT = 513;

    private Record() {}
  }

  private Layout() {}

  /** Returns the first multiple of a power of two at or after an offset. */
  static long align(long offset, int alignment) {
    return offset + alignment - 1 & -alignment;
  }
}
