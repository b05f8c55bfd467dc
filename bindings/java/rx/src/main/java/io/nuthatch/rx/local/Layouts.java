package io.nuthatch.rx.local;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.util.List;

/**
 * The structs of {@code nuthatch.h}. A test compares them with the header. {@code size_t} has 64
 * bits on all supported systems.
 */
final class Layouts {

  static final StructLayout ERROR =
      MemoryLayout.structLayout(
              JAVA_INT.withName("code"),
              JAVA_INT.withName("system"),
              JAVA_LONG.withName("position"),
              MemoryLayout.sequenceLayout(488, JAVA_BYTE).withName("message"))
          .withName("nuthatch_error");

  static final StructLayout OPTIONS =
      MemoryLayout.structLayout(
              JAVA_INT.withName("create"),
              JAVA_INT.withName("read_only"),
              JAVA_INT.withName("durability"),
              JAVA_INT.withName("tables"),
              JAVA_INT.withName("readers"),
              JAVA_INT.withName("growth_patience_ms"),
              JAVA_LONG.withName("reserve_bytes"),
              JAVA_LONG.withName("limit_bytes"),
              JAVA_INT.withName("allow_network_filesystem"),
              JAVA_INT.withName("reserved"))
          .withName("nuthatch_store_options");

  static final StructLayout RANGE =
      MemoryLayout.structLayout(
              ADDRESS.withName("start"),
              JAVA_LONG.withName("start_len"),
              ADDRESS.withName("end"),
              JAVA_LONG.withName("end_len"),
              JAVA_INT.withName("start_bound"),
              JAVA_INT.withName("end_bound"))
          .withName("nuthatch_store_range");

  static final StructLayout SCAN =
      MemoryLayout.structLayout(
              RANGE.withName("range"),
              JAVA_LONG.withName("limit"),
              JAVA_LONG.withName("batch_bytes"),
              JAVA_INT.withName("batch_rows"),
              JAVA_INT.withName("flags"),
              JAVA_INT.withName("has_limit"),
              JAVA_INT.withName("reserved"))
          .withName("nuthatch_store_scan_options");

  /** The layout of a row, with addresses as numbers, so that reading a row creates no segment. */
  static final StructLayout ROW =
      MemoryLayout.structLayout(
              ADDRESS.withName("key"),
              ADDRESS.withName("value"),
              JAVA_INT.withName("key_len"),
              JAVA_INT.withName("value_len"))
          .withName("nuthatch_store_row");

  static final StructLayout ENTRY =
      MemoryLayout.structLayout(
              ADDRESS.withName("value"),
              JAVA_LONG.withName("value_len"),
              JAVA_LONG.withName("version"),
              JAVA_LONG.withName("expires_at_ms"),
              JAVA_INT.withName("found"),
              JAVA_INT.withName("is_stamped"))
          .withName("nuthatch_store_entry");

  static final StructLayout KEY =
      MemoryLayout.structLayout(ADDRESS.withName("key"), JAVA_LONG.withName("key_len"))
          .withName("nuthatch_store_key");

  static final StructLayout WRITE =
      MemoryLayout.structLayout(
              JAVA_LONG.withName("table"),
              JAVA_INT.withName("operation"),
              JAVA_INT.withName("condition"),
              ADDRESS.withName("key"),
              JAVA_LONG.withName("key_len"),
              ADDRESS.withName("value"),
              JAVA_LONG.withName("value_len"),
              JAVA_LONG.withName("number"),
              ADDRESS.withName("range"))
          .withName("nuthatch_store_write");

  static final StructLayout WRITTEN =
      MemoryLayout.structLayout(
              JAVA_LONG.withName("transaction"),
              JAVA_LONG.withName("sequence"),
              JAVA_LONG.withName("deleted"))
          .withName("nuthatch_store_written");

  static final StructLayout WRITER_OPTIONS =
      MemoryLayout.structLayout(
              JAVA_INT.withName("group_batches"),
              JAVA_INT.withName("durability"),
              JAVA_LONG.withName("group_bytes"),
              JAVA_LONG.withName("queue_bytes"),
              JAVA_INT.withName("linger_ms"),
              JAVA_INT.withName("fail_together"))
          .withName("nuthatch_store_writer_options");

  static final StructLayout ACK =
      MemoryLayout.structLayout(
              JAVA_LONG.withName("tag"), WRITTEN.withName("written"), ERROR.withName("error"))
          .withName("nuthatch_store_ack");

  static final StructLayout CHANGE =
      MemoryLayout.structLayout(
              JAVA_LONG.withName("sequence"),
              JAVA_LONG.withName("transaction"),
              JAVA_LONG.withName("expires_at_ms"),
              ADDRESS.withName("table"),
              ADDRESS.withName("key"),
              ADDRESS.withName("value"),
              JAVA_INT.withName("table_len"),
              JAVA_INT.withName("key_len"),
              JAVA_LONG.withName("value_len"),
              JAVA_INT.withName("operation"),
              JAVA_INT.withName("reserved"))
          .withName("nuthatch_store_change");

  static final StructLayout STAT =
      MemoryLayout.structLayout(
              JAVA_LONG.withName("page_bytes"),
              JAVA_LONG.withName("map_bytes"),
              JAVA_LONG.withName("used_bytes"),
              JAVA_LONG.withName("file_bytes"),
              JAVA_LONG.withName("free_bytes"),
              JAVA_LONG.withName("transaction"),
              JAVA_LONG.withName("open_transactions"),
              JAVA_LONG.withName("sequence"),
              JAVA_LONG.withName("oldest_change"),
              JAVA_INT.withName("readers"),
              JAVA_INT.withName("max_readers"),
              JAVA_INT.withName("keeps_changes"),
              JAVA_INT.withName("reserved"))
          .withName("nuthatch_store_stat");

  static final StructLayout TABLE_STAT =
      MemoryLayout.structLayout(
              JAVA_LONG.withName("entries"),
              JAVA_LONG.withName("branch_pages"),
              JAVA_LONG.withName("leaf_pages"),
              JAVA_LONG.withName("overflow_pages"),
              JAVA_INT.withName("depth"),
              JAVA_INT.withName("reserved"))
          .withName("nuthatch_store_table_stat");

  static final List<StructLayout> ALL =
      List.of(
          ERROR, OPTIONS, RANGE, SCAN, ROW, ENTRY, KEY, WRITE, WRITTEN, WRITER_OPTIONS, ACK, CHANGE,
          STAT, TABLE_STAT);

  private Layouts() {}

  /** Returns the offset of a field in its struct. */
  static long at(StructLayout struct, String field) {
    return struct.byteOffset(groupElement(field));
  }
}
