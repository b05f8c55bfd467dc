/**
 * Reads snapshots: immutable files of keys and typed values that are mapped into memory.
 *
 * <p>{@link Snapshot#open} opens a file or a set of files, and {@link Watch} follows the files that
 * replace each other at a path.
 *
 * <ul>
 *   <li>A missing key is not an error: lookups return {@code null} or {@code false}.
 *   <li>Failures are {@link SnapshotException}s with a code that is the same in all languages. Use
 *       after closing is a {@link SnapshotClosedException}. Both are unchecked.
 *   <li>Returned arrays belong to the caller. Segments and buffers are read-only views of the file,
 *       which are valid until the snapshot is closed; those of compressed values are copies.
 * </ul>
 */
package io.nuthatch.snapshot;
