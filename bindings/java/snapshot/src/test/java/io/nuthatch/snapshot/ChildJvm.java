package io.nuthatch.snapshot;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Another JVM with the classes of this module and of its tests, without any library. */
final class ChildJvm {

  /**
   * The result of a program.
   *
   * @param status the exit status
   * @param output standard output and standard error
   */
  record Result(int status, String output) {}

  private ChildJvm() {}

  /** Runs the {@code main} of a class. */
  static Result run(List<String> options, Class<?> main, String... arguments) throws IOException {
    return run(options, main.getName(), arguments);
  }

  /** Compiles and runs a source file. */
  static Result runSource(Path source, String... arguments) throws IOException {
    return run(List.of(), source.toString(), arguments);
  }

  private static Result run(List<String> options, String main, String... arguments)
      throws IOException {
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(options);
    command.addAll(List.of("-cp", classPath(), main));
    command.addAll(List.of(arguments));
    var process = new ProcessBuilder(command).redirectErrorStream(true).start();
    var output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    try {
      return new Result(process.waitFor(), output);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static String classPath() {
    try {
      var source = Snapshot.class.getProtectionDomain().getCodeSource().getLocation();
      var target = Path.of(source.toURI()).getParent();
      return target.resolve("classes") + ":" + target.resolve("test-classes");
    } catch (URISyntaxException e) {
      throw new AssertionError(e);
    }
  }
}
