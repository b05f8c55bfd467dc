package io.nuthatch.rx.flow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.nuthatch.rx.BatchPolicy;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.subscribers.TestSubscriber;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** The rules of Reactive Streams that all streams of rows keep. */
class DrainingSubscriptionTest {

  /** Emits arrays that were added. */
  private static final class Arrays extends DrainingSubscription<Integer> {
    private final Queue<Integer[]> arrays = new ConcurrentLinkedQueue<>();
    private final AtomicInteger advancing = new AtomicInteger();
    private volatile boolean isComplete;
    private int released;
    private int discarded;

    Arrays(Subscriber<? super Integer> subscriber) {
      super(subscriber);
    }

    Arrays with(int... items) {
      arrays.add(IntStream.of(items).boxed().toArray(Integer[]::new));
      return this;
    }

    Arrays complete() {
      isComplete = true;
      return this;
    }

    @Override
    protected Found advance(boolean isRequested) {
      assertEquals(1, advancing.incrementAndGet(), "one thread at a time");
      boolean wasComplete = isComplete;
      var array = arrays.poll();
      advancing.decrementAndGet();
      if (array == null) {
        return wasComplete ? Found.END : Found.NOTHING_YET;
      }
      give(array, array.length);
      return Found.ITEMS;
    }

    @Override
    protected synchronized void release() {
      released++;
    }

    @Override
    protected void discard() {
      discarded++;
      arrays.clear();
    }
  }

  private final TestSubscriber<Integer> received = new TestSubscriber<>(0);
  private final Arrays arrays = new Arrays(received);

  private void subscribe() {
    received.onSubscribe(arrays);
  }

  @Test
  void no_more_items_are_emitted_than_were_requested() {
    arrays.with(1, 2, 3).with(4, 5).complete();
    subscribe();
    received.request(2);
    received.assertValues(1, 2);
    received.request(2);
    received.assertValues(1, 2, 3, 4).assertNotComplete();
    // The end needs no request.
    received.request(1);
    received.assertResult(1, 2, 3, 4, 5);
    assertEquals(1, arrays.discarded);
  }

  @Test
  void items_that_come_later_are_emitted_when_they_are_there() {
    subscribe();
    received.request(Long.MAX_VALUE);
    received.request(Long.MAX_VALUE);
    arrays.with(1).drain();
    arrays.with(2, 3).drain();
    received.assertValues(1, 2, 3).assertNotComplete();
    arrays.complete().drain();
    received.assertResult(1, 2, 3);
  }

  @Test
  void a_request_of_less_than_one_fails_the_stream_and_frees_it() {
    for (long wrong : new long[] {0, -1, Long.MIN_VALUE}) {
      var subscriber = new TestSubscriber<Integer>(0);
      var failing = new Arrays(subscriber).with(1);
      subscriber.onSubscribe(failing);
      failing.request(wrong);
      failing.request(1);
      subscriber.assertFailure(IllegalArgumentException.class);
      assertTrue(failing.released > 0 && failing.isStopped());
    }
  }

  @Test
  void a_group_of_items_fails_after_a_request_of_less_than_one_too() {
    var groups = new Groups<>(Flowable.range(0, 100), BatchPolicy.defaults());
    var direct = new TestSubscriber<List<Integer>>(0);
    groups.subscribe(
        new Subscriber<List<Integer>>() {
          @Override
          public void onSubscribe(Subscription given) {
            direct.onSubscribe(given);
            given.request(0);
          }

          @Override
          public void onNext(List<Integer> group) {
            direct.onNext(group);
          }

          @Override
          public void onError(Throwable thrown) {
            direct.onError(thrown);
          }

          @Override
          public void onComplete() {
            direct.onComplete();
          }
        });
    direct.assertFailure(IllegalArgumentException.class);
  }

  @Test
  void nothing_is_emitted_after_the_stream_was_cancelled() {
    var cancelling =
        new TestSubscriber<Integer>(0) {
          @Override
          public void onNext(Integer item) {
            super.onNext(item);
            if (item == 2) {
              cancel();
            }
          }
        };
    var items = new Arrays(cancelling).with(1, 2, 3).complete();
    cancelling.onSubscribe(items);
    cancelling.request(10);
    cancelling.assertValues(1, 2).assertNotComplete().assertNoErrors();
    assertTrue(items.released > 0);
    assertNull(items.failure());
  }

  @Test
  void what_a_subscriber_throws_fails_its_stream() {
    var throwing =
        new TestSubscriber<Integer>(0) {
          @Override
          public void onNext(Integer item) {
            super.onNext(item);
            throw new AssertionError("from the subscriber");
          }
        };
    var items = new Arrays(throwing).with(1, 2);
    throwing.onSubscribe(items);
    throwing.request(10);
    throwing.assertFailure(AssertionError.class, 1);
    assertTrue(items.released > 0);
  }

  @Test
  void a_request_from_within_an_item_does_not_nest() {
    var depth = new AtomicInteger();
    var nested =
        new TestSubscriber<Integer>(0) {
          @Override
          public void onNext(Integer item) {
            assertEquals(1, depth.incrementAndGet());
            super.onNext(item);
            request(1);
            depth.decrementAndGet();
          }
        };
    var items = new Arrays(nested).with(IntStream.range(0, 100_000).toArray()).complete();
    nested.onSubscribe(items);
    nested.request(1);
    nested.assertValueCount(100_000).assertComplete();
  }

  @Test
  void threads_that_request_and_deliver_at_once_lose_nothing() throws InterruptedException {
    subscribe();
    int threads = 4;
    int each = 20_000;
    var done = new CountDownLatch(threads);
    for (int i = 0; i < threads; i++) {
      boolean requests = i % 2 == 0;
      Thread.ofPlatform()
          .start(
              () -> {
                for (int n = 0; n < each; n++) {
                  if (requests) {
                    received.request(1);
                  } else {
                    arrays.with(n).drain();
                  }
                }
                done.countDown();
              });
    }
    done.await();
    received.assertValueCount(each * threads / 2).assertNoErrors();
    assertFalse(arrays.isStopped());
  }
}
