package io.nuthatch.snapshot.zstd;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The header and the blocks of a zstd frame (RFC 8878), read without decompressing it. */
public final class Frame {

  /** Maximum length of the header of a frame in bytes. */
  public static final int MAX_HEADER = 18;

  private static final int MAGIC = 0xFD2FB528;
  private static final int MAX_BLOCK = 128 << 10;
  private static final int BLOCK_HEADER = 3;
  private static final int INVALID = -1;

  private final ByteBuffer bytes;
  private int at = 4;
  private boolean hasChecksum;

  private Frame(byte[] frame) {
    bytes = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
  }

  /**
   * Returns the length of the content that a frame states.
   *
   * @param start the first {@link #MAX_HEADER} bytes of the frame, or all if it has fewer
   * @return the length, or -1 if the bytes are not a frame or it states no length
   */
  public static long contentLength(byte[] start) {
    try {
      return new Frame(start).header();
    } catch (IndexOutOfBoundsException e) {
      return INVALID; // The frame ends within its header.
    }
  }

  /**
   * Returns whether bytes are one complete frame. They must begin with a valid header.
   *
   * @param frame the bytes
   * @return whether they are a frame
   */
  public static boolean isComplete(byte[] frame) {
    var read = new Frame(frame);
    try {
      read.header();
      return read.endsAfterBlocks();
    } catch (IndexOutOfBoundsException e) {
      return false; // The frame ends within a block header.
    }
  }

  /**
   * Returns the maximum length of a frame in which every block has content.
   *
   * @param contentLength length of the content in bytes
   * @return the length in bytes
   */
  public static long maxLength(long contentLength) {
    return (BLOCK_HEADER + 1) * contentLength + 64;
  }

  private long header() {
    if (bytes.getInt(0) != MAGIC) {
      return INVALID;
    }
    int descriptor = bytes.get(at++);
    boolean isSingleSegment = (descriptor & 0x20) != 0;
    hasChecksum = (descriptor & 4) != 0;
    at += isSingleSegment ? 0 : 1;
    int dictionaryIdBytes = descriptor & 3;
    at += dictionaryIdBytes == 3 ? 4 : dictionaryIdBytes;
    return contentField(descriptor >> 6 & 3, isSingleSegment);
  }

  /** Reads the field with the length of the content. */
  private long contentField(int flag, boolean isSingleSegment) {
    int begin = at;
    switch (flag) {
      case 0 -> {
        at += isSingleSegment ? 1 : 0;
        return isSingleSegment ? bytes.get(begin) & 0xFF : INVALID;
      }
      case 1 -> {
        at += 2;
        return (bytes.getShort(begin) & 0xFFFF) + 256;
      }
      case 2 -> {
        at += 4;
        return bytes.getInt(begin) & 0xFFFFFFFFL;
      }
      default -> {
        at += 8;
        return bytes.getLong(begin);
      }
    }
  }

  /** Returns whether the last block, and the checksum after it, end with the bytes. */
  private boolean endsAfterBlocks() {
    boolean isLast = false;
    while (!isLast) {
      int header = bytes.getShort(at) & 0xFFFF | (bytes.get(at + 2) & 0xFF) << 16;
      isLast = (header & 1) != 0;
      int type = header >> 1 & 3;
      int size = header >> 3;
      if (type == 3 || size > MAX_BLOCK) {
        return false;
      }
      at += BLOCK_HEADER + (type == 1 ? 1 : size);
    }
    return at + (hasChecksum ? 4 : 0) == bytes.limit();
  }
}
