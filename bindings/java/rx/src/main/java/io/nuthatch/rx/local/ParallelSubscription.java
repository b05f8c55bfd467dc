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
 * <p>Each {@link Reading} reads part after part on a thread of {@code Schedulers.io()} and makes
 * its rows into chunks there. A thread that has made a chunk emits all chunks that are ready, and
 * then reads on; if another thread is emitting already, it reads on at once. So a thread never
 * waits for another one as long as there is room for its chunks. Without room it gives its thread
 * back, and is scheduled again when half of the room is free.
 */
final class ParallelSubscription<T> extends DrainingSubscription<T> implements Running {

  /** Maximum number of chunks of a part that are not emitted yet. */
  private static final int MAX_CHUNKS_AHEAD = 8;
  /**
   * The same in an ordered scan, in which parts after the first wait for their turn: enough for
   * their threads to go on meanwhile.
   */
  private static final int MAX_CHUNKS_AHEAD_ORDERED = 32;
  /** Maximum number of parts, for each thread, that are begun and not emitted to their end. */
  private static final int MAX_PARTS_PER_THREAD = 2;
  /** Rows of a chunk: so many that the cost of handing it over is small beside that of its rows. */
  private static final int CHUNK_ROWS = 1024;

  private final OpenStore store;
  private final RowMapper<? extends T> mapper;
  private final NativeScan[] scans;
  private final boolean isOrdered;
  private final int threads;
  private final int maxChunksAhead;

  // Under the lock of this.
  /** Parts that are begun and not emitted to their end, in the order of the scan. */
  private final ArrayDeque<Part<T>> open = new ArrayDeque<>();

  private int next;
  private boolean isStarted;
  /** Readings that wait until a part may be begun. */
  private final ArrayDeque<Reading> idle = new ArrayDeque<>();

  /** A part of the scan, with what was read of it. */
  private static final class Part<T> {
    private final ChunkReader<T> reader;
    private final ArrayDeque<Chunk<T>> chunks = new ArrayDeque<>();
    private boolean isRead;
    private Throwable failure;
    /** Its reading, while that waits for room. */
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

  /** Begins to read, with the first request. */
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

  /** Ends all reading, and the transactions. */
  @Override
  protected void release() {
    for (var scan : scans) {
      scan.close();
    }
    store.running.remove(this);
  }

  /** The work of one thread. It may go on in another thread after it waited. */
  private final class Reading implements Runnable {

    private Part<T> part;

    @Override
    public void run() {
      while (!isStopped() && begin(this)) {
        read(part);
        drain();
        if (!goesOn(this)) {
          return;
        }
      }
    }
  }

  /** Finds the part that a reading is to read; false where there is none for now, or no more. */
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

  /** Whether a reading may go on now; notes where it waits otherwise. */
  private synchronized boolean goesOn(Reading reading) {
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
   * Takes the next chunk: null where none is ready, {@link Chunk#END} after the last. In an ordered
   * scan only the first part that is not at its end has chunks to give. A part fails after its
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
