package io.nuthatch.snapshot;

import java.nio.file.Path;

/** A program that opens a file and prints its number of entries, or the error. */
final class WithoutZstd {

  private WithoutZstd() {}

  public static void main(String[] arguments) {
    try (var snapshot = Snapshot.open(Path.of(arguments[0]))) {
      snapshot.verify();
      System.out.println(snapshot.size());
    } catch (SnapshotException e) {
      System.out.println(e.code() + " " + e.offset().orElse(-1) + " " + e.expected());
    }
  }
}
