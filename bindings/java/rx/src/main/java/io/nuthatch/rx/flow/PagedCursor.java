package io.nuthatch.rx.flow;

import io.nuthatch.rx.Cursor;
import io.nuthatch.rx.Range;
import io.nuthatch.rx.Row;
import io.nuthatch.rx.Scan;
import java.util.Arrays;
import java.util.List;

/**
 * A cursor over one state of a table, which reads by short scans. The more it moves in one
 * direction, the more rows each scan reads ahead.
 */
public final class PagedCursor implements Cursor {

  private static final int MAX_AHEAD = 256;

  /** Rows of one state of a table. */
  @FunctionalInterface
  public interface Source {
    /**
     * Returns the first rows of a scan, at most {@link Scan#limit}; an empty list after the last
     * row.
     */
    List<Row> rows(Scan scan);
  }

  private final Source source;
  private Row row;
  private boolean isMoved;
  /** Rows after the current one, in the direction of {@link #isReverse}. */
  private List<Row> ahead = List.of();

  private int at;
  private boolean isReverse;
  private int size = 1;

  /** Creates a cursor before the first row. */
  public PagedCursor(Source source) {
    this.source = source;
  }

  @Override
  public boolean first() {
    return jump(Scan.all());
  }

  @Override
  public boolean last() {
    return jump(Scan.all().reverse());
  }

  @Override
  public boolean seek(byte[] key) {
    return jump(Scan.of(Range.all().from(key)));
  }

  @Override
  public boolean find(byte[] key) {
    return jump(Scan.of(Range.closed(key, key)));
  }

  @Override
  public boolean next() {
    return isMoved ? step(false) : first();
  }

  @Override
  public boolean previous() {
    return isMoved ? step(true) : last();
  }

  @Override
  public byte[] key() {
    return row().key();
  }

  @Override
  public byte[] value() {
    return row().value();
  }

  @Override
  public Row row() {
    if (row == null) {
      throw new IllegalStateException("expected a cursor on a row, found one on none");
    }
    return row;
  }

  private boolean jump(Scan scan) {
    isMoved = true;
    forget();
    var found = source.rows(scan.limit(1));
    row = found.isEmpty() ? null : found.getFirst();
    return row != null;
  }

  private boolean step(boolean backward) {
    if (row == null) {
      return false;
    }
    if (at == ahead.size() || backward != isReverse) {
      if (backward != isReverse) {
        forget();
        isReverse = backward;
      }
      var rest = backward ? Range.all().before(row.key()) : Range.all().after(row.key());
      var scan = backward ? Scan.of(rest).reverse() : Scan.of(rest);
      ahead = source.rows(scan.limit(size));
      at = 0;
      size = Math.min(MAX_AHEAD, size * 4);
    }
    row = at < ahead.size() ? ahead.get(at++) : null;
    return row != null;
  }

  private void forget() {
    ahead = List.of();
    at = 0;
    size = 1;
  }

  @Override
  public String toString() {
    return row == null ? "Cursor[]" : "Cursor[" + Arrays.toString(row.key()) + "]";
  }
}
