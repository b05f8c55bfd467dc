package io.nuthatch.snapshot;

import io.nuthatch.snapshot.hash.Xxh3;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * The manifest of a set, checked.
 *
 * @param path the path that the caller gave
 * @param location where the file was found
 * @param bytes all bytes of the file
 * @param seed seed of the key hash of all shards
 * @param shards the entries of the shards, in order
 * @param metadata offset and length of the metadata
 */
record Manifest(
    Path path,
    Location location,
    byte[] bytes,
    long seed,
    List<Shard> shards,
    Section metadata) {

  /** Maximum length of a manifest in bytes. */
  private static final int MAX_LENGTH =
      Layout.Manifest.LENGTH + Layout.Manifest.ENTRY * Layout.MAX_SHARDS + Layout.MAX_METADATA;

  /**
   * An entry of the manifest.
   *
   * @param number number of the shard
   * @param fileLength length of the shard's file
   * @param entries number of its entries
   * @param headerHash the {@code header_hash} of its file
   */
  record Shard(int number, long fileLength, long entries, long headerHash) {

    String fileName() {
      return "%05d-%016x.shard".formatted(number, headerHash);
    }
  }

  /**
   * Where a manifest was found.
   *
   * @param realPath its absolute path without symbolic links, or {@code null} if the system cannot
   *     determine it, for instance because the file was removed
   * @param folder the folder of its shards: that of the real path if it differs from the folder of
   *     the path that the caller gave
   */
  record Location(Path realPath, Path folder) {

    static Location of(Path path) {
      var folder = path.resolveSibling("");
      var realPath = realPath(path);
      if (realPath == null || realPath.getParent().equals(realPath(folder))) {
        return new Location(realPath, folder);
      }
      return new Location(realPath, realPath.getParent());
    }

    private static Path realPath(Path path) {
      try {
        return path.toRealPath();
      } catch (IOException e) {
        return null;
      }
    }

    /** Returns whether a path is a symbolic link to a file in another folder. */
    boolean isInOtherFolder(Path path) {
      return !folder.equals(path.resolveSibling(""));
    }
  }

  /** Returns whether another manifest is the same file with the same bytes. */
  boolean isSame(Manifest other) {
    return Arrays.equals(bytes, other.bytes)
        && Objects.equals(location.realPath(), other.location.realPath());
  }

  /** Returns the path of the file of a shard. */
  Path pathOf(Shard shard) {
    return location.folder().resolve(shard.fileName());
  }

  /** Returns whether the bytes of a file begin with the magic of a manifest. */
  static boolean isManifest(MemorySegment file) {
    return file.byteSize() >= Long.BYTES && file.get(Layout.U64, 0) == Layout.MANIFEST_MAGIC;
  }

  /**
   * Reads and checks a manifest. Returns {@code null} if the file does not begin with the magic of
   * a manifest. If the path is a symbolic link to a file in another folder, reads the manifest
   * again at its real path, so that it is the one of the folder whose shards are opened.
   *
   * @throws SnapshotException with the code {@code io}, {@code unsupported} or {@code corrupt}
   */
  static Manifest read(Path path) {
    try {
      var bytes = readBytes(path);
      if (bytes == null) {
        return null;
      }
      var location = Location.of(path);
      var file = path;
      if (location.isInOtherFolder(path)) {
        var linked = readLinked(location.realPath());
        // A manifest that has just been removed has no shards either, so opening them is retried.
        if (linked != null) {
          bytes = linked;
          file = location.realPath();
        }
      }
      long length = bytes.length <= MAX_LENGTH ? bytes.length : Files.size(file);
      return new Check(bytes, length, path).read(location);
    } catch (IOException e) {
      throw SnapshotException.io(path, "open", e);
    }
  }

  /** Reads a manifest. A byte more than the maximum shows that the file is longer. */
  private static byte[] readBytes(Path file) throws IOException {
    return MappedFiles.readStart(file, Layout.MANIFEST_MAGIC, MAX_LENGTH + 1);
  }

  /** Reads a manifest at its real path. Returns {@code null} if it is no longer there. */
  private static byte[] readLinked(Path realPath) throws IOException {
    try {
      return readBytes(realPath);
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  /** The checks, in the order that {@code docs/formats/snapshot.md} determines. */
  private static final class Check {

    private final byte[] bytes;
    private final long length;
    private final Fields fields;

    Check(byte[] bytes, long length, Path path) {
      this.bytes = bytes;
      this.length = length;
      this.fields = new Fields(bytes, path);
    }

    Manifest read(Location location) {
      checkHeader();
      int shards = (int) fields.u32(Layout.Manifest.SHARDS);
      int metadata = Layout.Manifest.LENGTH + Layout.Manifest.ENTRY * shards;
      checkPart(Layout.Manifest.TABLE_HASH, "the table", Layout.Manifest.LENGTH, metadata);
      checkPart(Layout.Manifest.METADATA_HASH, "the metadata", metadata, bytes.length);
      var entries = new ArrayList<Shard>(shards);
      for (int i = 0; i < shards; i++) {
        int at = Layout.Manifest.LENGTH + Layout.Manifest.ENTRY * i;
        entries.add(new Shard(i, fields.u64(at), fields.u64(at + 8), fields.u64(at + 16)));
      }
      checkEntries(entries);
      return new Manifest(
          fields.path,
          location,
          bytes,
          fields.u64(Layout.Header.SEED),
          List.copyOf(entries),
          new Section(metadata, bytes.length - metadata));
    }

    private void checkHeader() {
      int min = Layout.Manifest.LENGTH;
      fields.check(bytes.length >= min, bytes.length, "a header of 96 bytes", bytes.length);
      fields.checkVersion();
      fields.checkHash(
          Layout.Manifest.HASH, "the header", Xxh3.hash(bytes, Layout.Manifest.HASH, 0));
      long flags = fields.u32(Layout.Manifest.FLAGS);
      if (flags != 0) {
        throw SnapshotException.unsupported(
            fields.path, Layout.Manifest.FLAGS, "no flags", "flags " + flags);
      }
      fields.checkEqual(
          Layout.Header.HEADER_LEN, "the header length", min, fields.u32(Layout.Header.HEADER_LEN));
      fields.checkEqual(
          Layout.Header.FILE_LEN, "the file length", fields.u64(Layout.Header.FILE_LEN), length);
      long shards = fields.u32(Layout.Manifest.SHARDS);
      fields.checkRange(Layout.Manifest.SHARDS, "shards", 1, Layout.MAX_SHARDS, shards);
      long metadata = fields.u64(Layout.Manifest.METADATA_LEN);
      fields.checkRange(
          Layout.Manifest.METADATA_LEN, "bytes of metadata", 0, Layout.MAX_METADATA, metadata);
      fields.checkEqual(
          Layout.Header.FILE_LEN,
          "the file length",
          min + Layout.Manifest.ENTRY * shards + metadata,
          length);
      fields.checkReserved(Layout.Manifest.RESERVED, Layout.Manifest.HASH);
    }

    private void checkPart(int at, String what, int from, int to) {
      var part = Arrays.copyOfRange(bytes, from, to);
      fields.checkHash(at, what, Xxh3.hash(part, part.length, 0));
    }

    private void checkEntries(List<Shard> shards) {
      long sum = 0;
      boolean overflows = false;
      for (var shard : shards) {
        sum += shard.entries();
        overflows |= Long.compareUnsigned(sum, shard.entries()) < 0;
      }
      int at = Layout.Header.ENTRIES;
      fields.check(!overflows, at, "fewer than 2^64 entries", sum);
      fields.checkEqual(at, "entries of all shards", fields.u64(at), sum);
    }
  }
}
