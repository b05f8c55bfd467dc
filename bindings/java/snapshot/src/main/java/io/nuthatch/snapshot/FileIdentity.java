package io.nuthatch.snapshot;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/**
 * The identity of a file, to detect that another file has its path. It includes the times and the
 * length, because the system can reuse an inode number. Linux and macOS only.
 */
record FileIdentity(Map<String, Object> attributes) {

  /**
   * Returns the identity of the file at a path.
   *
   * @throws SnapshotException with the code {@code io}
   */
  static FileIdentity of(Path path) {
    try {
      return new FileIdentity(
          Files.readAttributes(path, "unix:dev,ino,size,lastModifiedTime,ctime"));
    } catch (IOException e) {
      throw SnapshotException.io(path, "stat", e);
    }
  }
}
