package io.nuthatch.rx.remote;

import io.grpc.KnownLength;
import io.grpc.MethodDescriptor;
import io.nuthatch.rx.Row;
import io.nuthatch.rx.RowMapper;
import io.nuthatch.rx.StoreException;
import io.nuthatch.store.v1.StoreProto.ScanResponse;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * The bytes of a {@code ScanResponse}. Rows are decoded when they are read: generated code would
 * copy each row, and create four objects for it.
 */
record Rows(byte[] message) {

  private static final int ROW = 1 << 3 | 2;
  private static final int KEY = 1 << 3 | 2;
  private static final int VALUE = 2 << 3 | 2;

  /** Keeps messages encoded. */
  static final MethodDescriptor.Marshaller<Rows> MARSHALLER =
      new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(Rows rows) {
          throw new UnsupportedOperationException("clients send no rows");
        }

        @Override
        public Rows parse(InputStream stream) {
          try {
            int known = stream instanceof KnownLength ? stream.available() : 0;
            var bytes = known > 0 ? stream.readNBytes(known) : stream.readAllBytes();
            return new Rows(bytes);
          } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
          }
        }
      };

  /** Returns the rows of a decoded message. */
  static Rows of(ScanResponse response) {
    return new Rows(response.toByteArray());
  }

  /** Maps the rows, one after the other. */
  <T> Plan.Chunk<T> read(RowMapper<? extends T> mapper) {
    return new Reader<>(message, mapper);
  }

  private static final class Reader<T> implements Plan.Chunk<T> {

    private final byte[] bytes;
    private final RowMapper<? extends T> mapper;
    /** All bytes as a segment, for mappers; copying rows does not need it. */
    private final MemorySegment segment;

    private int at;
    private int keyAt;
    private int keyLen;
    private int valueAt;
    private int valueLen;

    Reader(byte[] bytes, RowMapper<? extends T> mapper) {
      this.bytes = bytes;
      this.mapper = mapper;
      this.segment =
          mapper == RowMapper.COPY ? null : MemorySegment.ofArray(bytes).asReadOnly();
    }

    @Override
    public T next() throws Throwable {
      while (at < bytes.length) {
        long tag = number();
        if (tag != ROW) {
          skip(tag);
          continue;
        }
        findRow(length(bytes.length));
        T made = make();
        if (made != null) {
          return made;
        }
      }
      return null;
    }

    @SuppressWarnings("unchecked") // `COPY` returns rows
    private T make() throws Throwable {
      if (segment == null) {
        return (T)
            new Row(
                Arrays.copyOfRange(bytes, keyAt, keyAt + keyLen),
                Arrays.copyOfRange(bytes, valueAt, valueAt + valueLen));
      }
      return mapper.map(segment.asSlice(keyAt, keyLen), segment.asSlice(valueAt, valueLen));
    }

    private void findRow(int len) {
      int end = at + len;
      keyAt = keyLen = valueAt = valueLen = 0;
      while (at < end) {
        long tag = number();
        if (tag == KEY) {
          keyLen = length(end);
          keyAt = at;
          at += keyLen;
        } else if (tag == VALUE) {
          valueLen = length(end);
          valueAt = at;
          at += valueLen;
        } else {
          skip(tag);
        }
      }
      if (at != end) {
        throw damaged();
      }
    }

    /** Reads a length, and checks that its content ends at or before {@code end}. */
    private int length(int end) {
      long len = number();
      if (len < 0 || len > end - at) {
        throw damaged();
      }
      return (int) len;
    }

    private long number() {
      if (at < bytes.length && bytes[at] >= 0) {
        return bytes[at++];
      }
      long number = 0;
      for (int shift = 0; shift < 64; shift += 7) {
        if (at == bytes.length) {
          throw damaged();
        }
        byte each = bytes[at++];
        number |= (each & 0x7fL) << shift;
        if (each >= 0) {
          return number;
        }
      }
      throw damaged();
    }

    /** Skips an unknown field. */
    private void skip(long tag) {
      switch ((int) (tag & 7)) {
        case 0 -> number();
        case 1 -> forward(8);
        case 2 -> forward(length(bytes.length));
        case 5 -> forward(4);
        default -> throw damaged();
      }
    }

    private void forward(int by) {
      if (by > bytes.length - at) {
        throw damaged();
      }
      at += by;
    }

    private StoreException damaged() {
      var text = "expected a message with rows, found other bytes at " + at;
      return StoreException.of("decode", text);
    }
  }
}
