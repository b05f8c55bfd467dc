package io.nuthatch.rx.remote;

import io.nuthatch.rx.Change;
import io.nuthatch.rx.Watch;
import io.nuthatch.store.v1.StoreGrpc;
import io.nuthatch.store.v1.StoreProto.WatchRequest;
import io.nuthatch.store.v1.StoreProto.WatchResponse;
import java.util.OptionalLong;

/** A watch, which continues after the last received change. */
final class WatchPlan implements Plan<WatchResponse, Change> {

  private final Calls calls;
  private final Watch watch;
  private volatile OptionalLong sequence = OptionalLong.empty();

  WatchPlan(Calls calls, Watch watch) {
    this.calls = calls;
    this.watch = watch;
  }

  @Override
  public Source<WatchResponse> open() {
    var request = WatchRequest.newBuilder().setRange(Convert.range(watch.range()));
    watch.table().ifPresent(table -> request.setTable(table.name()));
    if (sequence.isPresent()) {
      request.setAfter(sequence.getAsLong());
    } else {
      switch (watch.start()) {
        case Watch.Now now -> request.clearStart();
        case Watch.Oldest oldest -> request.setOldest(true);
        case Watch.After after -> request.setAfter(after.sequence());
      }
    }
    return new CallSource<>(calls, StoreGrpc.getWatchMethod(), request.build());
  }

  @Override
  public void came(WatchResponse message) {
    sequence = OptionalLong.of(message.getSequence());
  }

  @Override
  public Chunk<Change> read(WatchResponse message) {
    var changes = message.getChangesList().iterator();
    return () -> changes.hasNext() ? Convert.change(changes.next()) : null;
  }

  @Override
  public boolean mayResume() {
    return true;
  }

  @Override
  public boolean reconnects() {
    // The first message confirms the start.
    return sequence.isPresent();
  }

  @Override
  public boolean saysThatItBegan() {
    return true;
  }
}
