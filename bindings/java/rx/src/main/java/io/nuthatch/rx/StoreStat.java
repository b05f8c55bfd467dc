package io.nuthatch.rx;

import java.util.List;
import java.util.OptionalLong;

/**
 * What a store tells of itself.
 *
 * @param pageBytes bytes of a page
 * @param mapBytes bytes of addresses that the store may grow into without moving its map
 * @param usedBytes bytes up to the last page in use
 * @param fileBytes bytes of the file
 * @param freeBytes bytes of pages that can be used again
 * @param transaction the last transaction that was committed
 * @param readers slots of readers in use, or used before, in all processes
 * @param maxReaders slots of readers that there are
 * @param openTransactions transactions that are open in the process of the store
 * @param sequence the number of the last change
 * @param oldestChange the number of the oldest change that is kept; empty when none are
 * @param tables the tables: the main one first, the others by name
 */
public record StoreStat(
    long pageBytes,
    long mapBytes,
    long usedBytes,
    long fileBytes,
    long freeBytes,
    long transaction,
    int readers,
    int maxReaders,
    long openTransactions,
    long sequence,
    OptionalLong oldestChange,
    List<TableStat> tables) {

  /**
   * What a table tells of itself.
   *
   * @param name the name; empty for the main one
   * @param kind what it keeps with each value
   * @param entries rows, those among them that have expired and were not swept yet
   * @param depth levels of the tree
   * @param branchPages pages that lead to others
   * @param leafPages pages with rows
   * @param overflowPages pages with long values
   */
  public record TableStat(
      String name,
      Kind kind,
      long entries,
      int depth,
      long branchPages,
      long leafPages,
      long overflowPages) {}
}
