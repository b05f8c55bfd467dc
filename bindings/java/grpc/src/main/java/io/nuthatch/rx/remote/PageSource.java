package io.nuthatch.rx.remote;

import io.nuthatch.rx.Scan;
import io.nuthatch.rx.StoreException;
import io.nuthatch.store.v1.StoreProto.ScanResponse;
import io.nuthatch.store.v1.StoreProto.TxnResponse;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.disposables.Disposable;
import java.util.function.Function;

/** The rows of a scan in a transaction: a request for each message, one at a time. */
final class PageSource implements Source<Rows> {

  private final Function<Scan, Single<TxnResponse>> pages;
  private Scan rest;
  private Sink<Rows> sink;
  private int wanted;
  private boolean isAsking;
  private boolean isEnded;
  private Disposable asking = Disposable.disposed();

  PageSource(Function<Scan, Single<TxnResponse>> pages, Scan scan) {
    this.pages = pages;
    this.rest = scan;
  }

  @Override
  public void start(Sink<Rows> to) {
    sink = to;
  }

  @Override
  public void request(int messages) {
    synchronized (this) {
      wanted += messages;
      if (isAsking || isEnded) {
        return;
      }
      isAsking = true;
    }
    ask();
  }

  private void ask() {
    if (rest.limit() == 0) {
      end(null);
      return;
    }
    var next = pages.apply(rest).subscribe(answer -> came(answer.getScan()), this::failed);
    synchronized (this) {
      if (isEnded) {
        next.dispose();
      } else {
        asking = next;
      }
    }
  }

  private void came(ScanResponse page) {
    int count = page.getRowsCount();
    if (count == 0) {
      end(null);
      return;
    }
    synchronized (this) {
      rest = after(rest, page.getRows(count - 1).getKey().toByteArray(), count);
      wanted--;
    }
    sink.message(Rows.of(page));
    synchronized (this) {
      if (wanted == 0 || isEnded) {
        isAsking = false;
        return;
      }
    }
    ask();
  }

  private void failed(Throwable thrown) {
    var known =
        thrown instanceof StoreException store
            ? store
            : StoreException.of("internal", thrown.toString(), thrown);
    end(new Failure(known, false));
  }

  private void end(Failure failure) {
    synchronized (this) {
      if (isEnded) {
        return;
      }
      isEnded = true;
    }
    sink.end(failure);
  }

  @Override
  public synchronized void cancel() {
    isEnded = true;
    asking.dispose();
  }

  private static Scan after(Scan scan, byte[] last, int rows) {
    var range = scan.range();
    return new Scan(
        scan.isReverse() ? range.before(last) : range.after(last),
        scan.isReverse(),
        scan.limit() == Long.MAX_VALUE ? scan.limit() : scan.limit() - rows,
        scan.isKeysOnly(),
        scan.batchRows(),
        scan.batchBytes());
  }
}
