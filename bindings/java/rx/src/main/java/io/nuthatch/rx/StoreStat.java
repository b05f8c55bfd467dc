package io.nuthatch.rx;

import java.util.List;
import java.util.OptionalLong;

/**
 * Statistics of a store.
 *
 * @param pageBytes length of a page in bytes
 * @param mapBytes length of the memory map in bytes: the file can grow up to it without moving the
 *     map
 * @param usedBytes bytes up to the last page in use, including free pages before it
 * @param fileBytes length of the file in bytes
 * @param freeBytes bytes of free pages, including those that become reusable when older readers end
 * @param transaction the number of the last committed transaction
 * @param readers number of reader slots that are in use or were used, in all processes
 * @param maxReaders maximum number of reader slots
 * @param openTransactions number of open transactions in the process that has the store open
 * @param sequence the sequence number of the last change
 * @param oldestChange the sequence number of the oldest kept change; empty if no changes are kept
 * @param tables statistics of the tables: the main table first, then the others in name order
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
   * Statistics of a table.
   *
   * @param name the name; empty for the main table
   * @param kind what the table stores with each value
   * @param entries number of rows, including expired rows that were not swept yet
   * @param depth number of levels of the tree
   * @param branchPages number of branch pages, which refer to other pages
   * @param leafPages number of leaf pages, which have the rows
   * @param overflowPages number of overflow pages, which have long values
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
