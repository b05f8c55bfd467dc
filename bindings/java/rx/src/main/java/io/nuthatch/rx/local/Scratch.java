package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Range;
import io.nuthatch.rx.Scan;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Native memory of a thread for the arguments and results of one call of the library. No code of
 * callers runs between {@link #mine} and the last read of a result, so calls do not overwrite each
 * other's memory.
 */
final class Scratch {

  /** All memory of the process: memory of the library is a slice of it. */
  static final MemorySegment EVERYTHING = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

  private static final ThreadLocal<Scratch> OF_THREAD = ThreadLocal.withInitial(Scratch::new);
  private static final long FIRST_BYTES = 16 << 10;
  private static final long KEPT_BYTES = 1 << 20;

  private static final long LIMIT = Layouts.at(Layouts.SCAN, "limit");
  private static final long BATCH_BYTES = Layouts.at(Layouts.SCAN, "batch_bytes");
  private static final long BATCH_ROWS = Layouts.at(Layouts.SCAN, "batch_rows");
  private static final long FLAGS = Layouts.at(Layouts.SCAN, "flags");
  private static final long HAS_LIMIT = Layouts.at(Layouts.SCAN, "has_limit");

  /** Receives the error of a call. */
  final MemorySegment error = Arena.ofAuto().allocate(Layouts.ERROR);

  private MemorySegment room = Arena.ofAuto().allocate(FIRST_BYTES, 8);
  private long used;
  /** Buffers that were too small, kept until the call has ended. */
  private final List<MemorySegment> outgrown = new ArrayList<>();

  /** Returns the scratch of this thread, empty. */
  static Scratch ofThread() {
    var mine = OF_THREAD.get();
    mine.clear();
    return mine;
  }

  private void clear() {
    used = 0;
    outgrown.clear();
    if (room.byteSize() > KEPT_BYTES) {
      room = Arena.ofAuto().allocate(FIRST_BYTES, 8);
    }
  }

  /** Returns uninitialized memory for one call, aligned to 8 bytes. */
  MemorySegment take(long bytes) {
    long from = used;
    long to = from + ((bytes + 7) & ~7);
    if (to > room.byteSize()) {
      outgrown.add(room);
      room = Arena.ofAuto().allocate(Math.max(bytes + 8, room.byteSize() * 2), 8);
      from = 0;
      to = (bytes + 7) & ~7;
    }
    used = to;
    return room.asSlice(from, bytes);
  }

  /** Returns zeroed memory for one call. */
  MemorySegment zeros(long bytes) {
    return take(bytes).fill((byte) 0);
  }

  /** Copies bytes to native memory. */
  MemorySegment copy(byte[] bytes) {
    var copy = take(bytes.length);
    MemorySegment.copy(bytes, 0, copy, JAVA_BYTE, 0, bytes.length);
    return copy;
  }

  /** Converts a range to its struct. */
  MemorySegment range(Range range) {
    var struct = zeros(Layouts.RANGE.byteSize());
    putRange(struct, range);
    return struct;
  }

  /** Converts a scan to its struct. */
  MemorySegment scan(Scan scan) {
    var struct = zeros(Layouts.SCAN.byteSize());
    putRange(struct, scan.range());
    struct.set(JAVA_LONG, LIMIT, scan.limit());
    struct.set(JAVA_LONG, BATCH_BYTES, scan.batchBytes());
    struct.set(JAVA_INT, BATCH_ROWS, scan.batchRows());
    struct.set(JAVA_INT, FLAGS, (scan.isReverse() ? 1 : 0) + (scan.isKeysOnly() ? 2 : 0));
    struct.set(JAVA_INT, HAS_LIMIT, scan.limit() < Long.MAX_VALUE ? 1 : 0);
    return struct;
  }

  /** Converts ranges to an array of structs. */
  MemorySegment ranges(List<Range> ranges) {
    long each = Layouts.RANGE.byteSize();
    var structs = zeros(ranges.size() * each);
    for (int i = 0; i < ranges.size(); i++) {
      putRange(structs.asSlice(i * each, each), ranges.get(i));
    }
    return structs;
  }

  private void putRange(MemorySegment struct, Range range) {
    if (range.start().isPresent()) {
      putBound(struct, 0, 32, range.start().get());
    }
    if (range.end().isPresent()) {
      putBound(struct, 16, 36, range.end().get());
    }
  }

  private void putBound(MemorySegment struct, long at, long kindAt, Range.Bound bound) {
    struct.set(JAVA_LONG, at, copy(bound.key()).address());
    struct.set(JAVA_LONG, at + 8, bound.key().length);
    struct.set(JAVA_INT, kindAt, bound.included() ? 1 : 2);
  }
}
