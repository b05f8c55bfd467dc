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
 * The bytes of a {@code ScanResponse}. Rows are found in them as they are wanted: the code that
 * the compiler of messages makes would copy each of them, and have four objects for it.
 */
record Rows(byte[] message) {

  private static final int ROW = 1 << 3 | 2;
  private static final int KEY = 1 << 3 | 2;
  private static final int VALUE = 2 << 3 | 2;

  /** Takes messages as they come. */
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

  /** The rows of a message that was taken apart. */
  static Rows of(ScanResponse response) {
    return new Rows(response.toByteArray());
  }

  /** What a mapper makes of the rows, one after the other. */
  <T> Plan.Chunk<T> read(RowMapper<? extends T> mapper) {
    return new Reader<>(message, mapper);
  }

  private static final class Reader<T> implements Plan.Chunk<T> {

    private final byte[] bytes;
    private final RowMapper<? extends T> mapper;
    /** All bytes, for mappers; rows are copied without it. */
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

    @SuppressWarnings("unchecked") // a row is what `COPY` makes
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

    /** A length that leaves what it is of before {@code end}. */
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

    /** Goes past a field that this version does not know. */
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
