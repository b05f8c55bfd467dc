"""Sets of shards, for reader.py: written from docs/formats/snapshot.md alone."""

import pathlib
import struct

from reader import MAX_METADATA, MAX_SHARDS, Snapshot, check, hash_of, metadata_of, shard_of

MANIFEST_MAGIC = b"\x89NUS\r\n\x1a\n"
MANIFEST, MANIFEST_ENTRY = struct.Struct("<8s 2H I 3Q 2I 3Q 16s Q"), struct.Struct("<3Q")


def open_snapshot(path):
    """Opens a snapshot.

    Returns:
        A `Snapshot`, or a `SnapshotSet` if the path is that of a manifest.

    Raises:
        OSError: A file cannot be read.
        SnapshotError: A header or the manifest contradicts the format.
    """
    with open(path, "rb") as file:
        is_manifest = file.read(8) == MANIFEST_MAGIC
    return SnapshotSet(path) if is_manifest else Snapshot.open(path)


class SnapshotSet:
    """An open set of shards, with the methods of `Snapshot`.

    Args:
        path: The path of the manifest.
    """

    def __init__(self, path):
        while True:
            data = pathlib.Path(path).read_bytes()
            self.read_manifest(data)
            try:
                self.shards = [self.open_shard(path, *shard) for shard in enumerate(self.table)]
                return
            except FileNotFoundError:
                # The writer of a new manifest has removed the shards of this one.
                if pathlib.Path(path).read_bytes() == data:
                    raise

    def read_manifest(self, data):
        """Reads and checks the manifest."""
        size = MANIFEST.size
        check(len(data) >= size, len(data), "length of the file", f"{size} or more", len(data))
        (_, major, minor, header_len, file_len, self.seed, self.entries, count, flags, metadata_len,
         table_hash, metadata_hash, reserved, header_hash) = MANIFEST.unpack_from(data)
        check(major == 1, 8, "version_major", 1, major, "unsupported")
        hashed = hash_of(data[:88])
        check(header_hash == hashed, 88, "header_hash", header_hash, hashed)
        check(flags == 0, 44, "flags", 0, flags, "unsupported")
        check(header_len == size, 12, "header_len", size, header_len)
        check(file_len == len(data), 16, "file_len", file_len, len(data))
        check(1 <= count <= MAX_SHARDS, 40, "shards", f"1 to {MAX_SHARDS}", count)
        check(metadata_len <= MAX_METADATA, 48, "metadata_len", MAX_METADATA, metadata_len)
        self.metadata_at = size + MANIFEST_ENTRY.size * count
        expected = self.metadata_at + metadata_len
        check(file_len == expected, 16, "file_len", expected, file_len)
        nonzero = next((i for i, byte in enumerate(reserved) if byte), None)
        check(minor > 0 or nonzero is None, 72 + (nonzero or 0), "reserved", 0, reserved)
        table, self.metadata_bytes = data[size:self.metadata_at], data[self.metadata_at:]
        check(table_hash == hash_of(table), 56, "table_hash", table_hash, hash_of(table))
        hashed = hash_of(self.metadata_bytes)
        check(metadata_hash == hashed, 64, "metadata_hash", metadata_hash, hashed)
        self.table = list(MANIFEST_ENTRY.iter_unpack(table))
        found = sum(entries for _, entries, _ in self.table)
        check(found == self.entries, 32, "entries", self.entries, found)

    def open_shard(self, path, number, entry):
        """Opens a shard and compares it with its entry in the manifest."""
        file_len, entries, header_hash = entry
        shard = Snapshot.open(pathlib.Path(path).parent / f"{number:05}-{header_hash:016x}.shard")
        for at, what, expected, found in ((504, "header_hash", header_hash, shard.header_hash),
                                          (24, "seed", self.seed, shard.seed),
                                          (16, "file_len", file_len, shard.file_len),
                                          (32, "entries", entries, shard.entries)):
            check(found == expected, at, what, expected, found)
        expected, found = (number, len(self.table)), (shard.shard, shard.shard_count)
        check(found == expected, 308, "shard", expected, found)
        return shard

    def get(self, key):
        """Looks up a key, as `Snapshot.get`."""
        return self.shards[shard_of(hash_of(key, self.seed), len(self.shards))].get(key)

    def __iter__(self):
        """Yields pairs of key (bytes) and `Value`, in the order of the shards."""
        for shard in self.shards:
            yield from shard

    def metadata(self):
        """Returns the metadata as a dict from names to bytes."""
        return metadata_of(self.metadata_bytes, self.metadata_at)

    def verify(self):
        """Checks every byte of the set, as `Snapshot.verify`."""
        self.metadata()
        for shard in self.shards:
            shard.verify()
