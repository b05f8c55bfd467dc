package io.nuthatch.rx.remote;

import com.google.protobuf.ByteString;
import io.grpc.ConnectivityState;
import io.nuthatch.rx.Kind;
import io.nuthatch.rx.StoreException;
import io.nuthatch.store.v1.StoreGrpc;
import io.nuthatch.store.v1.StoreProto.CreateTableRequest;
import io.nuthatch.store.v1.StoreProto.GetRequest;
import io.nuthatch.store.v1.StoreProto.TablesRequest;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Single;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The tables of a server that calls have used, and their kinds. */
final class Tables {

  private final Calls calls;
  /** Tables that the server has opened, valid for the connection. */
  private final Map<String, Kind> opened = new ConcurrentHashMap<>();

  /** Tables that the server has looked up since, whether they exist or not. */
  private final Set<String> soughtFor = ConcurrentHashMap.newKeySet();

  /** Tables that the caller has requested from this store. */
  private final Set<String> named = ConcurrentHashMap.newKeySet();

  Tables(Calls calls) {
    this.calls = calls;
    forgetWhenLost(ConnectivityState.IDLE);
  }

  /** Forgets the tables: the next connection may be to another server. */
  private void forgetWhenLost(ConnectivityState now) {
    if (now != ConnectivityState.READY) {
      opened.clear();
      soughtFor.clear();
    }
    if (now != ConnectivityState.SHUTDOWN) {
      calls.channel.notifyWhenStateChanged(
          now, () -> forgetWhenLost(calls.channel.getState(false)));
    }
  }

  /** Returns whether a table can be used without waiting for {@link #open}. */
  boolean isOpen(RemoteTable table) {
    var known = table.name().isEmpty() ? Kind.PLAIN : opened.get(table.name());
    return known != null && (table.kind.isEmpty() || table.kind.get() == known);
  }

  /** Makes the server open a table, and create it if it does not exist. */
  Completable open(RemoteTable table) {
    return Completable.defer(
        () -> isOpen(table) ? Completable.complete() : open(table.name(), table.kind));
  }

  /** Records a requested table. */
  void name(String name) {
    named.add(name);
  }

  /**
   * Makes the server open all requested tables that exist. A read transaction does not see tables
   * that are opened after it began.
   */
  Completable openNamed() {
    return Flowable.fromIterable(named)
        .filter(name -> !opened.containsKey(name) && !soughtFor.contains(name))
        .flatMapCompletable(this::seek);
  }

  private Completable seek(String name) {
    var request = GetRequest.newBuilder().setTable(name).setKey(ByteString.copyFrom(new byte[1]));
    return calls
        .read(StoreGrpc.getGetMethod(), request.build())
        .ignoreElement()
        .onErrorComplete(
            thrown -> thrown instanceof StoreException known && known.code().equals("no-table"))
        .doOnComplete(() -> soughtFor.add(name));
  }

  private Completable open(String name, Optional<Kind> kind) {
    if (name.isEmpty()) {
      return Completable.error(wrongKind(name, kind.orElse(Kind.PLAIN), Kind.PLAIN));
    }
    var request =
        CreateTableRequest.newBuilder().setName(name).setKind(Convert.kind(kind)).build();
    // Creating a table twice has the same result.
    return calls
        .read(StoreGrpc.getCreateTableMethod(), request)
        .map(answer -> Convert.kind(answer.getKind()))
        .onErrorResumeNext(thrown -> mayNotMake(thrown) ? find(name, kind) : Single.error(thrown))
        .doOnSuccess(found -> opened.put(name, found))
        .ignoreElement();
  }

  private static boolean mayNotMake(Throwable thrown) {
    return thrown instanceof StoreException known
        && (known.code().equals("forbidden") || known.code().equals("read-only"));
  }

  /** Looks a table up for a client whose token allows only reads. */
  private Single<Kind> find(String name, Optional<Kind> kind) {
    return calls
        .read(StoreGrpc.getTablesMethod(), TablesRequest.getDefaultInstance())
        .map(
            answer -> {
              for (var table : answer.getTablesList()) {
                if (table.getName().equals(name)) {
                  var found = Convert.kind(table.getKind());
                  if (kind.isPresent() && kind.get() != found) {
                    throw wrongKind(name, kind.get(), found);
                  }
                  return found;
                }
              }
              throw StoreException.of(
                  "no-table", "expected a table \"" + name + "\", found none");
            });
  }

  private static StoreException wrongKind(String name, Kind expected, Kind found) {
    return StoreException.of(
        "table", "table \"" + name + "\": expected a " + expected + " one, found " + found);
  }
}
