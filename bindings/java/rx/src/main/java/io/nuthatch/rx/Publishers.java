package io.nuthatch.rx;

import java.util.concurrent.Flow;
import org.reactivestreams.FlowAdapters;
import org.reactivestreams.Publisher;

/** Converts streams to and from {@link java.util.concurrent.Flow}. */
public final class Publishers {

  private Publishers() {}

  /**
   * Returns a stream of a store as a publisher of {@link java.util.concurrent.Flow}.
   *
   * @param <T> the type of the items
   * @param publisher the stream
   * @return the converted publisher
   */
  public static <T> Flow.Publisher<T> toFlow(Publisher<T> publisher) {
    return FlowAdapters.toFlowPublisher(publisher);
  }

  /**
   * Returns a publisher of {@link java.util.concurrent.Flow} as a stream for calls of a store.
   *
   * @param <T> the type of the items
   * @param publisher the publisher
   * @return the converted publisher
   */
  public static <T> Publisher<T> fromFlow(Flow.Publisher<T> publisher) {
    return FlowAdapters.toPublisher(publisher);
  }
}
