package io.nuthatch.snapshot;

import java.lang.foreign.Arena;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.function.Supplier;

/** Opens snapshots: one file, or the shards of a manifest. */
final class Opening {

  /** Maximum number of lookups of a path at which no file is found. */
  private static final int MAX_LOOKUPS = 8;

  private Opening() {}

  /** Does the same as {@link Snapshot#open(Path, OpenOptions)}. */
  static Snapshot open(Path path, OpenOptions options) {
    var snapshot = openNewest(path, options);
    if (options.verify()) {
      try {
        snapshot.verify();
      } catch (Throwable e) {
        snapshot.close();
        throw e;
      }
    }
    return snapshot;
  }

  /** Opens a file. Returns {@code null} if a manifest is at the path now. */
  private static Snapshot openFile(Path path, OpenOptions options) {
    var arena = Arena.ofShared();
    try {
      var bytes = MappedFiles.map(path, options.residency(), arena);
      if (!Manifest.isManifest(bytes)) {
        return new Snapshot(path, arena, new SnapshotFile[] {SnapshotFile.of(path, bytes)}, null);
      }
    } catch (InternalError e) {
      arena.close();
      throw SnapshotException.unreadable(path, e);
    } catch (Throwable e) {
      arena.close();
      throw e;
    }
    arena.close();
    return null;
  }

  /** Opens a shard without comparing it. */
  private static SnapshotFile map(Path path, OpenOptions options, Arena arena) {
    try {
      return SnapshotFile.of(path, MappedFiles.map(path, options.residency(), arena));
    } catch (InternalError e) {
      throw SnapshotException.unreadable(path, e);
    }
  }

  /** Opens the file or the set. Reads the path again if another one replaces it meanwhile. */
  private static Snapshot openNewest(Path path, OpenOptions options) {
    var manifest = linked(() -> Manifest.read(path));
    while (true) {
      try {
        var opened =
            manifest == null
                ? linked(() -> openFile(path, options))
                : openShards(manifest, options);
        if (opened != null) {
          return opened;
        }
        manifest = linked(() -> Manifest.read(path));
      } catch (SnapshotException e) {
        if (manifest == null || !(e.getCause() instanceof NoSuchFileException)) {
          throw e;
        }
        // The writer of a new manifest or file has removed the shards of this manifest, or a
        // symbolic link has been switched from it.
        var newer = linked(() -> Manifest.read(path));
        if (newer != null && newer.isSame(manifest)) {
          throw e;
        }
        manifest = newer;
      }
    }
  }

  /**
   * Opens or reads the file at the path of the caller. Looks a missing file up again: while the
   * system resolves the path, a symbolic link in it may be switched to another file and the old one
   * removed.
   */
  private static <T> T linked(Supplier<T> open) {
    for (int lookups = 1; ; lookups++) {
      try {
        return open.get();
      } catch (SnapshotException e) {
        if (lookups == MAX_LOOKUPS || !(e.getCause() instanceof NoSuchFileException)) {
          throw e;
        }
      }
    }
  }

  private static Snapshot openShards(Manifest manifest, OpenOptions options) {
    var arena = Arena.ofShared();
    try {
      var files = new SnapshotFile[manifest.shards().size()];
      for (var shard : manifest.shards()) {
        files[shard.number()] = openShard(manifest, shard, options, arena);
      }
      return new Snapshot(manifest.path(), arena, files, manifest);
    } catch (Throwable e) {
      arena.close();
      throw e;
    }
  }

  /** Opens a shard and compares it with its entry in the manifest. */
  private static SnapshotFile openShard(
      Manifest manifest, Manifest.Shard shard, OpenOptions options, Arena arena) {
    var path = manifest.pathOf(shard);
    var file = map(path, options, arena);
    var header = file.header;
    compare(file, Layout.Header.HASH, "header_hash", shard.headerHash(), header.hash);
    compare(file, Layout.Header.SEED, "seed", manifest.seed(), header.seed);
    compare(file, Layout.Header.FILE_LEN, "file_len", shard.fileLength(), header.fileLength);
    compare(file, Layout.Header.ENTRIES, "entries", shard.entries(), header.entries);
    int shards = manifest.shards().size();
    compare(file, Layout.Header.SHARD, "shards", shards, header.shards);
    compare(file, Layout.Header.SHARD, "shard", shard.number(), header.shard);
    return file;
  }

  private static void compare(SnapshotFile file, int at, String what, long expected, long found) {
    if (expected != found) {
      throw file.corrupt(
          at,
          what + " " + Long.toUnsignedString(expected) + " of the manifest",
          Long.toUnsignedString(found));
    }
  }
}
