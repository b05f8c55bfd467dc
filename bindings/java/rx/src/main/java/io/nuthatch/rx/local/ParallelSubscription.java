package io.nuthatch.rx.local;

import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.flow.DrainingSubscription;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.reactivestreams.Subscriber;

/**
 * A subscription to a scan that several threads read.
 *
 * <p>Each {@link Reading} reads one part after the other on a thread of {@code Schedulers.io()},
 * and converts rows to chunks there. After each chunk, the thread emits all chunks that are ready,
 * unless another thread is emitting, and continues to read. So a thread waits for another one only
 * if there is no room for its chunks. Without room it ends, and is scheduled again when half of the
 * room is free.
 */
final class ParallelSubscription<T> extends DrainingSubscription<T> implements Running {

  /** Maximum number of chunks of a part that are not emitted yet. */
  private static final int MAX_CHUNKS_AHEAD = 8;
  /**
   * The same maximum in an ordered scan. Parts after the first wait longer before they are emitted,
   * and their threads continue meanwhile.
   */
  private static final int MAX_CHUNKS_AHEAD_ORDERED = 32;
  /** Maximum number of parts per thread that are begun and not completely emitted. */
  private static final int MAX_PARTS_PER_THREAD = 2;
  /**
   * Number of rows in a chunk: the cost of passing a chunk to the subscriber is small beside it.
   */
  private static final int CHUNK_ROWS = 1024;

  private final OpenStore store;
  private final RowMapper<? extends T> mapper;
  private final NativeScan[] scans;
  private final boolean isOrdered;
  private final int threads;
  private final int maxChunksAhead;

  // Guarded by the lock of this object.
  /** Parts that are begun and not completely emitted, in the order of the scan. */
  private final ArrayDeque<Part<T>> open = new ArrayDeque<>();

  private int next;
  private boolean isStarted;
  /** Readings that wait until another part may begin. */
  private final ArrayDeque<Reading> idle = new ArrayDeque<>();

  /** A part of the scan, with its chunks. */
  private static final class Part<T> {
    private final ChunkReader<T> reader;
    private final ArrayDeque<Chunk<T>> chunks = new ArrayDeque<>();
    private boolean isRead;
    private Throwable failure;
    /** The reading of this part, while it waits for room. */
    private ParallelSubscription<T>.Reading waiting;

    Part(ChunkReader<T> reader) {
      this.reader = reader;
    }
  }

  ParallelSubscription(
      Subscriber<? super T> subscriber,
      OpenStore store,
      NativeScan[] scans,
      int threads,
      boolean isOrdered,
      RowMapper<? extends T> mapper) {
    super(subscriber);
    this.store = store;
    this.scans = scans;
    this.threads = threads;
    this.isOrdered = isOrdered;
    this.maxChunksAhead = isOrdered ? MAX_CHUNKS_AHEAD_ORDERED : MAX_CHUNKS_AHEAD;
    this.mapper = mapper;
  }

  /** Begins to read at the first request. */
  @Override
  protected void onRequest() {
    synchronized (this) {
      if (isStarted) {
        return;
      }
      isStarted = true;
    }
    for (int i = 0; i < Math.min(threads, scans.length); i++) {
      schedule(new Reading());
    }
  }

  private void schedule(Reading reading) {
    Schedulers.io().scheduleDirect(reading);
  }

  @Override
  public void fail(StoreException thrown) {
    stop(thrown);
  }

  /** Closes all scans, which ends their transactions. */
  @Override
  protected void release() {
    for (var scan : scans) {
      scan.close();
    }
    store.running.remove(this);
  }

  /** The work of one thread. After a wait it may continue on another thread. */
  private final class Reading implements Runnable {

    private Part<T> part;

    @Override
    public void run() {
      while (!isStopped() && begin(this)) {
        read(part);
        drain();
        if (!mayContinue(this)) {
          return;
        }
      }
    }
  }

  /** Assigns a part to a reading. Returns false if no part may begin now, or none is left. */
  private synchronized boolean begin(Reading reading) {
    if (reading.part != null) {
      return true;
    }
    if (next == scans.length) {
      return false;
    }
    if (open.size() >= threads * MAX_PARTS_PER_THREAD) {
      idle.add(reading);
      return false;
    }
    reading.part = new Part<>(new ChunkReader<>(scans[next], mapper, CHUNK_ROWS));
    next++;
    open.add(reading.part);
    return true;
  }

  /** Reads one chunk of a part. */
  private void read(Part<T> part) {
    Chunk<T> made = null;
    Throwable thrown = null;
    try {
      if (part.reader.read()) {
        made = part.reader.take();
      }
    } catch (Throwable any) {
      thrown = any;
    }
    synchronized (this) {
      if (made != null) {
        part.chunks.add(made);
      } else {
        part.isRead = true;
        part.failure = thrown;
      }
    }
  }

  /** Returns whether a reading may continue now; if not, registers it to be scheduled later. */
  private synchronized boolean mayContinue(Reading reading) {
    var part = reading.part;
    if (part.isRead) {
      reading.part = null;
      return true;
    }
    if (part.chunks.size() < maxChunksAhead) {
      return true;
    }
    part.waiting = reading;
    return false;
  }

  @Override
  protected Found advance(boolean isRequested) throws Throwable {
    var resumed = new ArrayList<Reading>(0);
    Chunk<T> taken;
    try {
      taken = take(resumed);
    } finally {
      resumed.forEach(this::schedule);
    }
    if (taken == null) {
      return Found.NOTHING_YET;
    }
    if (taken == Chunk.END) {
      return Found.END;
    }
    give(taken.items(), taken.count());
    return Found.ITEMS;
  }

  @Override
  protected synchronized void discard() {
    open.clear();
    idle.clear();
  }

  /**
   * Returns the next chunk: null if none is ready, {@link Chunk#END} after the last. In an ordered
   * scan only the first part that is not completely emitted provides chunks. A part fails after its
   * last chunk.
   */
  @SuppressWarnings("unchecked")
  private synchronized Chunk<T> take(List<Reading> resumed) throws Throwable {
    var parts = open.iterator();
    while (parts.hasNext()) {
      var part = parts.next();
      var taken = part.chunks.poll();
      if (taken != null) {
        if (part.waiting != null && part.chunks.size() <= maxChunksAhead / 2) {
          resumed.add(part.waiting);
          part.waiting = null;
        }
        return taken;
      }
      if (part.failure != null) {
        throw part.failure;
      }
      if (part.isRead) {
        parts.remove();
        if (!idle.isEmpty()) {
          resumed.add(idle.poll());
        }
      } else if (isOrdered) {
        return null;
      }
    }
    boolean isEnd = open.isEmpty() && next == scans.length;
    return isEnd ? (Chunk<T>) Chunk.END : null;
  }
}
