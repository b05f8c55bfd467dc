/** Decompression with zstd, by an optional library. */
package io.nuthatch.snapshot.zstd;
