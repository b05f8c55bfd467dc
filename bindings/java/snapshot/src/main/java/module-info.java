/**
 * The reader and the writer of Nuthatch snapshots.
 *
 * <p>{@link io.nuthatch.snapshot.Snapshot} is where to begin. The module {@code
 * com.github.luben.zstd_jni} is needed for files with compressed values only.
 */
module io.nuthatch.snapshot {
  requires static com.github.luben.zstd_jni;

  exports io.nuthatch.snapshot;
}
