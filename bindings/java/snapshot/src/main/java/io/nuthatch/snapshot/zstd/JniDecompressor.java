package io.nuthatch.snapshot.zstd;

import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdDictDecompress;
import com.github.luben.zstd.ZstdException;
import com.github.luben.zstd.util.Native;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** A decompressor with zstd-jni. Only this class refers to the library. */
final class JniDecompressor extends Decompressor {

  /** Contexts that no thread uses: at most this many, for all files. A power of two. */
  private static final int MAX_IDLE = 16;

  private static final AtomicReferenceArray<ZstdDecompressCtx> IDLE =
      new AtomicReferenceArray<>(MAX_IDLE);

  /** The dictionary, or {@code null}. The library frees it when it is unreachable. */
  private final ZstdDictDecompress dictionary;

  JniDecompressor(byte[] dictionary) {
    this.dictionary = dictionary == null ? null : new ZstdDictDecompress(dictionary);
  }

  static boolean isLoaded() {
    Native.load();
    return Native.isLoaded();
  }

  @Override
  public String decompress(byte[] frame, byte[] content) {
    int place = (int) Thread.currentThread().threadId() & MAX_IDLE - 1;
    var idle = IDLE.getAndSet(place, null);
    var context = idle == null ? new ZstdDecompressCtx() : idle;
    try {
      context.reset();
      if (dictionary != null) {
        context.loadDict(dictionary);
      }
      int length = context.decompressByteArray(content, 0, content.length, frame, 0, frame.length);
      return length == content.length ? null : "one of " + length + " bytes";
    } catch (ZstdException e) {
      return e.getMessage();
    } finally {
      if (!IDLE.compareAndSet(place, null, context)) {
        context.close();
      }
    }
  }
}
