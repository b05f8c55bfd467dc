package io.nuthatch.bench;

import java.util.Map;
import java.util.TreeMap;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.OptionsBuilder;

/** Runs the benchmarks, and prints millions of rows a second beside those of the rival. */
public final class Table {

  private static final Map<String, String> RIVALS =
      Map.of(
          "flowable", "lmdbjavaCopied",
          "flowableBy128", "lmdbjavaCopied",
          "flowableMapped", "lmdbjavaInPlace",
          "parallel2", "flowable",
          "parallel2Mapped", "flowableMapped");

  private Table() {}

  /** Takes what JMH takes. */
  public static void main(String[] arguments)
      throws RunnerException, CommandLineOptionException {
    var options =
        new OptionsBuilder()
            .parent(new CommandLineOptions(arguments))
            .exclude(SnapshotGets.class.getSimpleName())
            .jvmArgsPrepend("-Dnuthatch.library=" + System.getProperty("nuthatch.library"))
            .build();
    var rates = new TreeMap<Integer, Map<String, Double>>();
    for (var result : new Runner(options).run()) {
      int valueBytes = Integer.parseInt(result.getParams().getParam("valueBytes"));
      var label = result.getParams().getBenchmark();
      var name = label.substring(label.lastIndexOf('.') + 1);
      double rate = Rows.rows(valueBytes) / result.getPrimaryResult().getScore() / 1000;
      rates.computeIfAbsent(valueBytes, unused -> new TreeMap<>()).put(name, rate);
    }
    System.out.println("\n| value | scan | M rows/s | beside |");
    System.out.println("|---|---|---|---|");
    rates.forEach((bytes, all) -> all.forEach((name, rate) -> print(bytes, name, rate, all)));
  }

  private static void print(int valueBytes, String name, double rate, Map<String, Double> all) {
    var rival = RIVALS.get(name);
    var other = rival == null ? null : all.get(rival);
    var beside = other == null ? "" : "%.2f x %s".formatted(rate / other, rival);
    System.out.printf("| %d B | %s | %.2f | %s |%n", valueBytes, name, rate, beside);
  }
}
