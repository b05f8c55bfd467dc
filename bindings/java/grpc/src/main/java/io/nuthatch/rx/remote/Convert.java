package io.nuthatch.rx.remote;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import io.nuthatch.rx.Batch;
import io.nuthatch.rx.Change;
import io.nuthatch.rx.Condition;
import io.nuthatch.rx.Entry;
import io.nuthatch.rx.Kind;
import io.nuthatch.rx.Range;
import io.nuthatch.rx.Scan;
import io.nuthatch.rx.StoreStat;
import io.nuthatch.rx.Written;
import io.nuthatch.store.v1.StoreProto;
import java.time.Instant;
import java.util.Optional;
import java.util.OptionalLong;

/** Converts between types of the store and messages. */
final class Convert {

  private Convert() {}

  /** Wraps bytes without a copy: the caller must not change them before the call has completed. */
  static ByteString bytes(byte[] bytes) {
    return UnsafeByteOperations.unsafeWrap(bytes);
  }

  static StoreProto.Range range(Range range) {
    var message = StoreProto.Range.newBuilder();
    range
        .start()
        .ifPresent(
            start -> {
              var key = bytes(start.key());
              var unused = start.included() ? message.setFrom(key) : message.setAfter(key);
            });
    range
        .end()
        .ifPresent(
            end -> {
              var key = bytes(end.key());
              var unused = end.included() ? message.setTo(key) : message.setBefore(key);
            });
    return message.build();
  }

  static StoreProto.ScanRequest scan(String table, Scan scan) {
    var message =
        StoreProto.ScanRequest.newBuilder()
            .setTable(table)
            .setRange(range(scan.range()))
            .setReverse(scan.isReverse())
            .setKeysOnly(scan.isKeysOnly());
    if (scan.limit() < Long.MAX_VALUE) {
      message.setLimit(scan.limit());
    }
    if (scan.batchBytes() != Scan.BATCH_BYTES) {
      message.setBatchBytes(scan.batchBytes());
    }
    return message.build();
  }

  static StoreProto.Condition condition(Condition condition) {
    var message = StoreProto.Condition.newBuilder();
    return switch (condition) {
      case Condition.Presence presence ->
          presence == Condition.Presence.ABSENT
              ? message.setAbsent(true).build()
              : message.setPresent(true).build();
      case Condition.EqualTo equal -> message.setEquals(bytes(equal.value())).build();
      case Condition.Version version -> message.setVersion(version.version()).build();
    };
  }

  static StoreProto.Write write(Batch.Write write) {
    var message = StoreProto.Write.newBuilder().setTable(write.table().name());
    return switch (write) {
      case Batch.Put put -> {
        var operation = StoreProto.PutOperation.newBuilder();
        operation.setKey(bytes(put.key())).setValue(bytes(put.value()));
        put.expiresAt().ifPresent(moment -> operation.setExpiresAtMs(millis(moment)));
        yield message.setPut(operation).build();
      }
      case Batch.Delete delete -> message.setDelete(bytes(delete.key())).build();
      case Batch.DeleteRange delete -> message.setDeleteRange(range(delete.range())).build();
      case Batch.Check check ->
          message
              .setCheck(
                  StoreProto.CheckOperation.newBuilder()
                      .setKey(bytes(check.key()))
                      .setCondition(condition(check.condition())))
              .build();
    };
  }

  static Written written(StoreProto.Written written) {
    return new Written(written.getTransaction(), written.getSequence(), written.getDeleted());
  }

  static Entry entry(StoreProto.Entry entry) {
    var version =
        entry.hasVersion() ? OptionalLong.of(entry.getVersion()) : OptionalLong.empty();
    return new Entry(
        entry.getValue().toByteArray(),
        version,
        moment(entry.hasExpiresAtMs(), entry.getExpiresAtMs()));
  }

  static Change change(StoreProto.Change change) {
    var operation =
        switch (change.getOperation()) {
          case OPERATION_PUT -> Change.Operation.PUT;
          case OPERATION_DELETE -> Change.Operation.DELETE;
          case OPERATION_EXPIRE -> Change.Operation.EXPIRE;
          default -> throw Failure.noAnswer("a kind of change that this version knows");
        };
    var value =
        change.hasValue() ? Optional.of(change.getValue().toByteArray()) : Optional.<byte[]>empty();
    return new Change(
        change.getSequence(),
        change.getTransaction(),
        operation,
        change.getTable(),
        change.getKey().toByteArray(),
        value,
        moment(change.hasExpiresAtMs(), change.getExpiresAtMs()));
  }

  static Kind kind(StoreProto.Kind kind) {
    return switch (kind) {
      case KIND_PLAIN -> Kind.PLAIN;
      case KIND_STAMPED -> Kind.STAMPED;
      default -> throw Failure.noAnswer("a kind of table that this version knows");
    };
  }

  static StoreProto.Kind kind(Optional<Kind> kind) {
    if (kind.isEmpty()) {
      return StoreProto.Kind.KIND_UNSPECIFIED;
    }
    return kind.get() == Kind.PLAIN ? StoreProto.Kind.KIND_PLAIN : StoreProto.Kind.KIND_STAMPED;
  }

  static StoreStat stat(StoreProto.StatResponse stat) {
    var oldest =
        stat.hasOldestChange() ? OptionalLong.of(stat.getOldestChange()) : OptionalLong.empty();
    return new StoreStat(
        stat.getPageBytes(),
        stat.getMapBytes(),
        stat.getUsedBytes(),
        stat.getFileBytes(),
        stat.getFreeBytes(),
        stat.getTransaction(),
        stat.getReaders(),
        stat.getMaxReaders(),
        stat.getOpenTransactions(),
        stat.getSequence(),
        oldest,
        stat.getTablesList().stream().map(Convert::tableStat).toList());
  }

  private static StoreStat.TableStat tableStat(StoreProto.TableStat table) {
    return new StoreStat.TableStat(
        table.getName(),
        kind(table.getKind()),
        table.getEntries(),
        table.getDepth(),
        table.getBranchPages(),
        table.getLeafPages(),
        table.getOverflowPages());
  }

  /** Returns milliseconds since 1970, at least 1. */
  static long millis(Instant moment) {
    return Math.max(1, moment.toEpochMilli());
  }

  private static Optional<Instant> moment(boolean isThere, long millis) {
    return isThere ? Optional.of(Instant.ofEpochMilli(millis)) : Optional.empty();
  }
}
