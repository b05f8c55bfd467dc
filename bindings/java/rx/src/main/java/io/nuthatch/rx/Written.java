package io.nuthatch.rx;

/**
 * What became of writes that were committed.
 *
 * @param transaction the number of the transaction they were committed with
 * @param sequence the number of the last of these changes; a watch can go on after it
 * @param deleted how many keys they deleted
 */
public record Written(long transaction, long sequence, long deleted) {}
