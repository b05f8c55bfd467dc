package io.nuthatch.snapshot;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * Options of a watch.
 *
 * @param open how files are opened, and whether a file must verify before readers switch to it
 * @param interval time between polls for a new file, 250 ms by default. With zero, only {@link
 *     Watch#refresh} polls. After the code {@code io} or {@code unreadable}, the file is retried
 *     after 1, 2, 4 ... and at most 64 intervals; after another code, such as {@code corrupt}, when
 *     the file at the path changes
 * @param report called for each event, one at a time, by the thread of the watch or one that calls
 *     {@link Watch#refresh}. It may call all methods of the watch; events of a refresh within the
 *     callback are reported after it returns. If it throws, the watch continues, and its status has
 *     the exception
 */
public record WatchOptions(
    OpenOptions open, Duration interval, Consumer<? super WatchEvent> report) {

  private static final WatchOptions DEFAULTS =
      new WatchOptions(OpenOptions.defaults(), Duration.ofMillis(250), event -> {});

  /**
   * Checks that no option is {@code null} and that the interval is not negative.
   *
   * @throws IllegalArgumentException if the interval is negative
   */
  public WatchOptions {
    Objects.requireNonNull(open, "open");
    Objects.requireNonNull(report, "report");
    if (interval.isNegative()) {
      throw new IllegalArgumentException("interval: expected zero or more, found " + interval);
    }
  }

  /**
   * Returns the defaults.
   *
   * @return the default options
   */
  public static WatchOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Sets how files are opened.
   *
   * @param options the options of each file
   * @return the changed options
   */
  public WatchOptions open(OpenOptions options) {
    return new WatchOptions(options, interval, report);
  }

  /**
   * Sets the time between polls.
   *
   * @param time the time; with zero, only {@link Watch#refresh} polls
   * @return the changed options
   */
  public WatchOptions interval(Duration time) {
    return new WatchOptions(open, time, report);
  }

  /**
   * Sets the callback for events.
   *
   * @param callback the callback
   * @return the changed options
   */
  public WatchOptions report(Consumer<? super WatchEvent> callback) {
    return new WatchOptions(open, interval, callback);
  }
}
