package io.nuthatch.rx.remote;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import io.nuthatch.rx.Row;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.StoreException;
import io.nuthatch.store.v1.StoreProto;
import io.nuthatch.store.v1.StoreProto.ScanResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Rows found in the bytes of a message. */
class RowsTest {

  private static final List<Row> ROWS =
      List.of(
          Row.of("a", "1"), Row.of("b", ""), Row.of("c".repeat(300), "v".repeat(70_000)));

  private static byte[] message() {
    var message = ScanResponse.newBuilder().setTransaction(1L << 60).setSequence(-1);
    for (var row : ROWS) {
      message.addRows(
          StoreProto.Row.newBuilder()
              .setKey(ByteString.copyFrom(row.key()))
              .setValue(ByteString.copyFrom(row.value()))
              .setUnknownFields(unknown()));
    }
    return message.setUnknownFields(unknown()).build().toByteArray();
  }

  /** Fields of a later version, one of each form. */
  private static UnknownFieldSet unknown() {
    var field =
        UnknownFieldSet.Field.newBuilder()
            .addVarint(-1)
            .addFixed32(7)
            .addFixed64(8)
            .addLengthDelimited(ByteString.copyFromUtf8("later"))
            .build();
    return UnknownFieldSet.newBuilder().addField(100, field).build();
  }

  private static List<Row> read(byte[] message, RowMapper<Row> mapper) throws Throwable {
    var rows = new ArrayList<Row>();
    Plan.Chunk<Row> chunk = new Rows(message).read(mapper);
    for (Row row = chunk.next(); row != null; row = chunk.next()) {
      rows.add(row);
    }
    return rows;
  }

  @Test
  void rows_are_found_among_fields_that_are_not_known() throws Throwable {
    assertEquals(ROWS, read(message(), RowMapper.COPY));
    RowMapper<Row> mapper = (key, value) -> RowMapper.COPY.map(key, value);
    assertEquals(ROWS, read(message(), mapper));
    assertEquals(List.of(), read(new byte[0], RowMapper.COPY));
  }

  @Test
  void a_mapper_cannot_write_into_the_message() {
    RowMapper<Row> mapper =
        (key, value) -> {
          assertTrue(key.isReadOnly() && value.isReadOnly());
          return null;
        };
    assertEquals(List.of(), assertDoesNotThrow(message(), mapper));
  }

  private static List<Row> assertDoesNotThrow(byte[] message, RowMapper<Row> mapper) {
    try {
      return read(message, mapper);
    } catch (Throwable thrown) {
      throw new AssertionError(thrown);
    }
  }

  @Test
  void bytes_that_are_no_message_are_told_and_nothing_else_happens() throws Throwable {
    var message = message();
    var random = new Random(7);
    for (int i = 0; i < 20_000; i++) {
      var bytes = Arrays.copyOf(message, 1 + random.nextInt(600));
      for (int change = random.nextInt(4); change > 0; change--) {
        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
      }
      try {
        read(bytes, RowMapper.COPY);
      } catch (StoreException thrown) {
        assertEquals("decode", thrown.code());
      }
    }
    var cut = Arrays.copyOf(message, message.length - 1);
    assertThrows(StoreException.class, () -> read(cut, RowMapper.COPY));
  }
}
