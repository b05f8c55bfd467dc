package io.nuthatch.snapshot.library;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Finds {@code libnuthatch.so}: at the path of the system property {@code nuthatch.library}, else
 * beside the jar, else in the jar below {@code native/}. The library stays loaded until the process
 * ends.
 */
final class NativeLibrary {

  private static final String PROPERTY = "nuthatch.library";
  private static final String FILE = "libnuthatch.so";

  private NativeLibrary() {}

  static SymbolLookup load() {
    var path = given().or(NativeLibrary::besideJar).or(NativeLibrary::unpacked);
    if (path.isEmpty()) {
      throw new UnsatisfiedLinkError(
          "expected "
              + FILE
              + " in this jar, beside it or where -D"
              + PROPERTY
              + "=PATH says, found none; `cargo build --release -p nuthatch-c` makes it");
    }
    return SymbolLookup.libraryLookup(path.get(), Arena.global());
  }

  private static Optional<Path> given() {
    var given = System.getProperty(PROPERTY, "");
    if (given.isEmpty()) {
      return Optional.empty();
    }
    var path = Path.of(given).toAbsolutePath();
    if (!Files.isRegularFile(path)) {
      throw new UnsatisfiedLinkError("-D" + PROPERTY + ": expected a file, found none at " + path);
    }
    return Optional.of(path);
  }

  private static Optional<Path> besideJar() {
    try {
      var source = NativeLibrary.class.getProtectionDomain().getCodeSource();
      if (source == null || !source.getLocation().getProtocol().equals("file")) {
        return Optional.empty();
      }
      var path = Path.of(source.getLocation().toURI()).resolveSibling(FILE);
      return Files.isRegularFile(path) ? Optional.of(path) : Optional.empty();
    } catch (URISyntaxException e) {
      return Optional.empty();
    }
  }

  /** Copies the library of the jar to a temporary file, which is deleted when the process ends. */
  private static Optional<Path> unpacked() {
    var resource = "/native/linux-" + System.getProperty("os.arch") + "/" + FILE;
    try (var packed = NativeLibrary.class.getResourceAsStream(resource)) {
      if (packed == null) {
        return Optional.empty();
      }
      var folder = Files.createTempDirectory("nuthatch");
      var path = folder.resolve(FILE);
      folder.toFile().deleteOnExit();
      path.toFile().deleteOnExit();
      Files.copy(packed, path);
      return Optional.of(path);
    } catch (IOException e) {
      throw new UncheckedIOException("unpack " + FILE, e);
    }
  }
}
