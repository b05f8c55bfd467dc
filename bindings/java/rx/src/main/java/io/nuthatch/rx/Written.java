package io.nuthatch.rx;

/**
 * The result of a commit.
 *
 * @param transaction the number of the transaction
 * @param sequence the sequence number of the last change of these writes; a watch can continue
 *     after it
 * @param deleted number of deleted keys
 */
public record Written(long transaction, long sequence, long deleted) {}
