package io.nuthatch.rx.local;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.nuthatch.rx.Batch;
import io.nuthatch.rx.Condition;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.List;

/** Converts batches to structs of the library. */
final class Writes {

  private static final int PUT = 1;
  private static final int DELETE = 2;
  private static final int DELETE_RANGE = 3;
  private static final int CHECK = 4;

  private static final long EACH = Layouts.WRITE.byteSize();
  private static final long OPERATION = Layouts.at(Layouts.WRITE, "operation");
  private static final long CONDITION = Layouts.at(Layouts.WRITE, "condition");
  private static final long KEY = Layouts.at(Layouts.WRITE, "key");
  private static final long VALUE = Layouts.at(Layouts.WRITE, "value");
  private static final long NUMBER = Layouts.at(Layouts.WRITE, "number");
  private static final long RANGE = Layouts.at(Layouts.WRITE, "range");

  private Writes() {}

  /** Converts writes to an array of structs in the scratch of a call. Their tables must be open. */
  static MemorySegment put(Scratch scratch, OpenStore store, List<Batch.Write> writes) {
    var structs = scratch.zeros(EACH * writes.size());
    for (int i = 0; i < writes.size(); i++) {
      var struct = structs.asSlice(i * EACH, EACH);
      var write = writes.get(i);
      struct.set(JAVA_LONG, 0, store.tableHandle(write.table()));
      switch (write) {
        case Batch.Put put -> {
          begin(struct, PUT, scratch, put.key());
          bytes(struct, VALUE, scratch, put.value());
          struct.set(JAVA_LONG, NUMBER, put.expiresAt().map(Writes::millis).orElse(0L));
        }
        case Batch.Delete delete -> begin(struct, DELETE, scratch, delete.key());
        case Batch.DeleteRange delete -> {
          struct.set(JAVA_INT, OPERATION, DELETE_RANGE);
          struct.set(JAVA_LONG, RANGE, scratch.range(delete.range()).address());
        }
        case Batch.Check check -> {
          begin(struct, CHECK, scratch, check.key());
          condition(struct, scratch, check.condition());
        }
      }
    }
    return structs;
  }

  private static void begin(MemorySegment struct, int operation, Scratch scratch, byte[] key) {
    struct.set(JAVA_INT, OPERATION, operation);
    bytes(struct, KEY, scratch, key);
  }

  private static void bytes(MemorySegment struct, long at, Scratch scratch, byte[] bytes) {
    struct.set(JAVA_LONG, at, scratch.copy(bytes).address());
    struct.set(JAVA_LONG, at + 8, bytes.length);
  }

  private static void condition(MemorySegment struct, Scratch scratch, Condition condition) {
    int number =
        switch (condition) {
          case Condition.Presence presence -> presence == Condition.Presence.ABSENT ? 1 : 2;
          case Condition.EqualTo equal -> {
            bytes(struct, VALUE, scratch, equal.value());
            yield 3;
          }
          case Condition.Version version -> {
            struct.set(JAVA_LONG, NUMBER, version.version());
            yield 4;
          }
        };
    struct.set(JAVA_INT, CONDITION, number);
  }

  /** Returns milliseconds since 1970, at least 1: 0 would mean no expiry. */
  private static long millis(Instant moment) {
    return Math.max(1, moment.toEpochMilli());
  }
}
