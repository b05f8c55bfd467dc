package io.nuthatch.snapshot;

import java.nio.file.Path;
import java.util.Optional;

/**
 * The status of a watch.
 *
 * @param path the watched path
 * @param switched number of switches to a new snapshot
 * @param rejected number of {@link WatchEvent.Rejected} events
 * @param error the error that prevents a switch to the newest file; empty if readers have it
 * @param callbackError the last exception of the callback; empty if it never threw one
 */
public record WatchStatus(
    Path path,
    long switched,
    long rejected,
    Optional<SnapshotException> error,
    Optional<Throwable> callbackError) {

  WatchStatus switchedOnce() {
    return new WatchStatus(path, switched + 1, rejected, Optional.empty(), callbackError);
  }

  WatchStatus rejectedOnce(SnapshotException cause) {
    return new WatchStatus(path, switched, rejected + 1, Optional.of(cause), callbackError);
  }

  WatchStatus withError(Optional<SnapshotException> cause) {
    return new WatchStatus(path, switched, rejected, cause, callbackError);
  }

  WatchStatus withCallbackError(Throwable thrown) {
    return new WatchStatus(path, switched, rejected, error, Optional.of(thrown));
  }
}
