/** Opening of files as sources of bytes. */

import * as fs from "node:fs";
import { MemorySource, type Source } from "../bytes/source.js";
import { SnapshotError, ioError } from "../error.js";
import { AddonError, loadAddon } from "./addon.js";
import { MappedSource } from "./mapped.js";

/**
 * Where the bytes of an open file are kept: `mapped` from the page cache, which all processes
 * share, or `copied` into memory of this process when the file is opened. A copied file has at most
 * 4 GiB; later changes to the file have no effect on the copy.
 */
export type Residency = "mapped" | "copied";

/** Maximum number of bytes that one system call reads. */
const MAX_READ = 2 ** 30;
/** Opening a named pipe without this flag would wait for its writer. */
const FLAGS = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0);

/** Opens a file. Blocks until the system has opened it. */
export function openFileSync(path: string, residency: Residency): Source {
  checkResidency(residency);
  let fd: number;
  try {
    requireFile(fs.statSync(path));
    fd = fs.openSync(path, FLAGS);
  } catch (error) {
    throw ioError(path, "open", error);
  }
  try {
    const stat = fs.fstatSync(fd);
    requireFile(stat);
    if (residency === "mapped" && stat.size > 0) return mapFile(fd, stat.size, path);
    const bytes = new Uint8Array(stat.size);
    for (let at = 0; at < bytes.length;) {
      const count = fs.readSync(fd, bytes, at, Math.min(bytes.length - at, MAX_READ), at);
      if (count === 0) throw new Error("the file was truncated while it was read");
      at += count;
    }
    return new MemorySource(bytes, path);
  } catch (error) {
    throw asIoError(path, "read", error);
  } finally {
    fs.closeSync(fd);
  }
}

/** Does the same as {@link openFileSync} without blocking. */
export async function openFile(path: string, residency: Residency): Promise<Source> {
  checkResidency(residency);
  let file: fs.promises.FileHandle;
  try {
    requireFile(await fs.promises.stat(path));
    file = await fs.promises.open(path, FLAGS);
  } catch (error) {
    throw ioError(path, "open", error);
  }
  try {
    const stat = await file.stat();
    requireFile(stat);
    if (residency === "mapped" && stat.size > 0) {
      // Reads the header, so that the map need not wait for the disk.
      await file.read(new Uint8Array(4096), 0, 4096, 0);
      return mapFile(file.fd, stat.size, path);
    }
    const bytes = new Uint8Array(stat.size);
    for (let at = 0; at < bytes.length;) {
      const length = Math.min(bytes.length - at, MAX_READ);
      const { bytesRead } = await file.read(bytes, at, length, at);
      if (bytesRead === 0) throw new Error("the file was truncated while it was read");
      at += bytesRead;
    }
    return new MemorySource(bytes, path);
  } catch (error) {
    throw asIoError(path, "read", error);
  } finally {
    await file.close();
  }
}

function mapFile(fd: number, length: number, path: string): Source {
  const addon = loadAddon();
  try {
    return new MappedSource(addon, fd, length, path);
  } catch (error) {
    throw asIoError(path, "map", error);
  }
}

/**
 * Returns the absolute path of a file without symbolic links; undefined if the system cannot
 * determine it, for instance because the file was removed.
 */
export function realPathSync(path: string): string | undefined {
  try {
    return fs.realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** Does the same as {@link realPathSync} without blocking. */
export async function realPath(path: string): Promise<string | undefined> {
  try {
    return await fs.promises.realpath(path);
  } catch {
    return undefined;
  }
}

function requireFile(stat: fs.Stats): void {
  if (!stat.isFile()) throw new Error("not a regular file");
}

/** Returns an error of the system as one of this package. Others stay as they are. */
function asIoError(path: string, operation: string, error: unknown): unknown {
  const isOurs = error instanceof SnapshotError || error instanceof AddonError;
  return isOurs ? error : ioError(path, operation, error);
}

function checkResidency(residency: string): void {
  if (residency !== "mapped" && residency !== "copied") {
    throw new TypeError(`residency is "mapped" or "copied", found ${JSON.stringify(residency)}`);
  }
}
