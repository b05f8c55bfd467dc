package io.nuthatch.snapshot;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.nuthatch.snapshot.hash.Xxh3;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Random damage of good files, half of it with mended checksums, has documented errors only. */
class MutationTest {

  private static final long SEED = 20_261_124;
  private static final int MUTATIONS = 10_000;

  private static final List<String> FILES =
      List.of(
          "types",
          "shared",
          "zstd",
          "zstd-dictionary",
          "overflow",
          "entries-200",
          "metadata",
          "one",
          "empty",
          "set-3",
          "shared-compressed");

  @TempDir Path folder;

  @Test
  void mutated_files_have_documented_errors_only() throws IOException {
    Vectors.copyShards(folder);
    var random = new Random(SEED);
    int opened = 0;
    for (int i = 0; i < MUTATIONS; i++) {
      var name = FILES.get(random.nextInt(FILES.size()));
      var bytes = Files.readAllBytes(Vectors.ROOT.resolve("v1/" + name + ".nut"));
      bytes = mutated(bytes, random);
      if (random.nextBoolean()) {
        mend(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
      }
      // A new file each time: one that is mapped must not be changed.
      var path = folder.resolve("mutation-" + i + ".nut");
      Files.write(path, bytes);
      try {
        opened += SnapshotFuzzer.read(path) ? 1 : 0;
      } catch (RuntimeException | Error e) {
        throw new AssertionError("seed " + SEED + ", mutation " + i + " of " + name, e);
      }
      Files.delete(path);
    }
    assertTrue(opened > MUTATIONS / 4, opened + " files opened");
  }

  private static byte[] mutated(byte[] bytes, Random random) {
    var changed = bytes;
    if (random.nextInt(20) == 0) {
      changed = Arrays.copyOf(bytes, random.nextInt(bytes.length + 100));
    }
    for (int left = 1 + random.nextInt(4); left > 0 && changed.length > 0; left--) {
      int at = random.nextInt(changed.length);
      byte value =
          switch (random.nextInt(4)) {
            case 0 -> 0;
            case 1 -> -1;
            case 2 -> (byte) (changed[at] ^ 1 << random.nextInt(8));
            default -> (byte) random.nextInt();
          };
      int length = random.nextInt(4) == 0 ? 1 + random.nextInt(8) : 1;
      Arrays.fill(changed, at, Math.min(at + length, changed.length), value);
    }
    return changed;
  }

  /** Corrects the checksums of a file or manifest, as far as its lengths permit. */
  private static void mend(ByteBuffer bytes) {
    if (bytes.limit() >= 96 && bytes.getLong(0) == Layout.MANIFEST_MAGIC) {
      long table = 24L * Integer.toUnsignedLong(bytes.getInt(40));
      mendHash(bytes, 56, 96, table);
      mendHash(bytes, 64, 96 + table, bytes.limit() - 96 - table);
      mendHash(bytes, 88, 0, 88);
    } else if (bytes.limit() >= Layout.Header.LENGTH) {
      mendPartitions(bytes);
      mendHash(bytes, Layout.Header.DICTIONARY_HASH, bytes.getLong(56), bytes.getLong(64));
      mendHash(bytes, Layout.Header.DIRECTORY_HASH, bytes.getLong(72), bytes.getLong(80));
      for (int i = 0; i < Layout.MAX_ADDITIONAL; i++) {
        int entry = Layout.Header.ADDITIONAL + Layout.Additional.LENGTH * i;
        if (bytes.getInt(entry) != 0) {
          mendHash(bytes, entry + 24, bytes.getLong(entry + 8), bytes.getLong(entry + 16));
        }
      }
      mendHash(bytes, Layout.Header.HASH, 0, Layout.Header.HASH);
    }
  }

  private static void mendPartitions(ByteBuffer bytes) {
    int bits = bytes.getInt(Layout.Header.PARTITION_BITS);
    long lines = 64L * Integer.toUnsignedLong(bytes.getInt(Layout.Header.LINES_PER_PARTITION));
    long directory = bytes.getLong(72);
    for (int i = 0; bits >= 0 && bits <= 4 && i < 1 << bits; i++) {
      long at = directory + 32L * i;
      if (at < 0 || at > bytes.limit() - 32) {
        return;
      }
      int entry = (int) at;
      mendHash(bytes, entry + 16, bytes.getLong(88) + lines * i, lines);
      long data = bytes.getLong(104) + bytes.getLong(entry);
      mendHash(bytes, entry + 24, data, bytes.getLong(entry + 8));
    }
  }

  private static void mendHash(ByteBuffer bytes, int at, long offset, long length) {
    boolean isWithin = 0 <= offset && 0 <= length && offset <= bytes.limit() - length;
    if (isWithin) {
      var part = Arrays.copyOfRange(bytes.array(), (int) offset, (int) (offset + length));
      bytes.putLong(at, Xxh3.hash(part, part.length, 0));
    }
  }
}
