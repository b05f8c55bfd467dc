package io.nuthatch.snapshot;

/**
 * A part of a file.
 *
 * @param offset offset of the first byte
 * @param length number of bytes
 */
record Section(long offset, long length) {

  long end() {
    return offset + length;
  }

  /**
   * An additional section.
   *
   * @param entry offset of its entry in the header
   * @param kind its kind
   * @param section its bytes
   * @param checksum their stored checksum
   */
  record Additional(int entry, int kind, Section section, long checksum) {}
}
