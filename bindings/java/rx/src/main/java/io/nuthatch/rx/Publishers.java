package io.nuthatch.rx;

import java.util.concurrent.Flow;
import org.reactivestreams.FlowAdapters;
import org.reactivestreams.Publisher;

/** Streams of a store for {@link java.util.concurrent.Flow}, and the other way round. */
public final class Publishers {

  private Publishers() {}

  /** A stream of a store, for subscribers of {@link java.util.concurrent.Flow}. */
  public static <T> Flow.Publisher<T> toFlow(Publisher<T> publisher) {
    return FlowAdapters.toFlowPublisher(publisher);
  }

  /** A publisher of {@link java.util.concurrent.Flow}, for calls that take a stream. */
  public static <T> Publisher<T> fromFlow(Flow.Publisher<T> publisher) {
    return FlowAdapters.toPublisher(publisher);
  }
}
