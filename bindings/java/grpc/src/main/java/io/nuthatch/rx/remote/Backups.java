package io.nuthatch.rx.remote;

import io.nuthatch.rx.StoreException;
import io.nuthatch.store.v1.StoreGrpc;
import io.nuthatch.store.v1.StoreProto.BackupRequest;
import io.nuthatch.store.v1.StoreProto.BackupResponse;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/** Downloads copies of a store to a folder of this machine. */
final class Backups {

  private Backups() {}

  static Completable to(Calls calls, Path folder, boolean compact) {
    var request = BackupRequest.newBuilder().setCompact(compact).build();
    var parts = new StreamFlowable<>(calls, () -> new BackupPlan(calls, request));
    return Completable.using(
            () -> new Target(folder),
            target ->
                parts
                    .doOnNext(target::write)
                    .ignoreElements()
                    .andThen(Completable.fromAction(target::publish)),
            Target::close)
        .onErrorResumeNext(thrown -> Completable.error(withFolder(folder, thrown)))
        .subscribeOn(Schedulers.io());
  }

  private static Throwable withFolder(Path folder, Throwable thrown) {
    return thrown instanceof IOException
        ? StoreException.of("io", folder + ": back up: " + thrown, thrown)
        : thrown;
  }

  /** A file that is renamed to its final name when it is complete. */
  private static final class Target {

    private final Path folder;
    private final Path partial;
    private final Path data;
    private final FileChannel file;

    Target(Path folder) throws IOException {
      this.folder = folder;
      this.partial = folder.resolve("data.mdb.partial");
      this.data = folder.resolve("data.mdb");
      if (!Files.isDirectory(folder)) {
        Files.createDirectory(folder);
      }
      if (Files.exists(data)) {
        throw new IOException("expected a folder without a store, found " + data);
      }
      // An existing file was left by a killed process, and may be readable by other users.
      Files.deleteIfExists(partial);
      this.file =
          FileChannel.open(
              partial,
              Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    }

    void write(ByteBuffer part) throws IOException {
      while (part.hasRemaining()) {
        file.write(part);
      }
    }

    void publish() throws IOException {
      file.force(true);
      Files.move(partial, data, StandardCopyOption.ATOMIC_MOVE);
      // Syncs the folder, so that the name is durable, too.
      try (var names = FileChannel.open(folder, StandardOpenOption.READ)) {
        names.force(true);
      }
    }

    void close() throws IOException {
      file.close();
      Files.deleteIfExists(partial);
    }
  }

  private record BackupPlan(Calls calls, BackupRequest request)
      implements Plan<BackupResponse, ByteBuffer> {

    @Override
    public Source<BackupResponse> open() {
      return new CallSource<>(calls, StoreGrpc.getBackupMethod(), request);
    }

    @Override
    public Chunk<ByteBuffer> read(BackupResponse part) {
      var buffers = part.getData().asReadOnlyByteBufferList().iterator();
      return () -> buffers.hasNext() ? buffers.next() : null;
    }

    @Override
    public boolean mayResume() {
      return false;
    }
  }
}
