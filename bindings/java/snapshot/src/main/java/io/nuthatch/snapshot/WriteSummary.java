package io.nuthatch.snapshot;

/**
 * The result of writing a snapshot.
 *
 * @param entries number of entries
 * @param rows number of rows that were added, duplicates included
 * @param fileBytes length of the file in bytes; for a set, of all shards without the manifest
 * @param keyBytes sum of the lengths of all keys in bytes
 * @param valueBytes sum of the lengths of all values in bytes, uncompressed
 * @param storedValueBytes sum of the lengths of all stored values in bytes; a shared value counts
 *     once
 */
public record WriteSummary(
    long entries,
    long rows,
    long fileBytes,
    long keyBytes,
    long valueBytes,
    long storedValueBytes) {}
