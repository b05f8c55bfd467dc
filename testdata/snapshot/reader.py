"""A reader of Nuthatch snapshots, written from docs/formats/snapshot.md alone.

It is an example of a reader and a test of the specification, written for clarity, not for speed.
Requires Python 3.9 and the package `xxhash`, and `zstandard` for compressed values.
"""

import mmap
import struct
from collections import Counter, namedtuple

import xxhash

MAGIC = b"\x89NUT\r\n\x1a\n"
HEADER_LEN, DIRECTORY_ENTRY_LEN, LINE_LEN, SLOTS = 512, 32, 64, 14
ADDITIONAL_AT, RESERVED_AT = 320, 448
HEADER = struct.Struct("<8s 2H I 3Q 4I 8Q 2Q 5Q 16Q 4I 128s 56s Q")
ADDITIONAL = struct.Struct("<2I 3Q")
METADATA, METADATA_HEAD = 1, struct.Struct("<H I")
SECTIONS = ("dictionary", "directory", "index", "data")
COUNTS = {"entries": 32, "key_bytes": 136, "value_bytes": 144, "stored_value_bytes": 152,
          "shared_entries": 160, "compressed_entries": 168}
FLAG_COMPRESSED, FLAG_DICTIONARY, FLAG_SHARED = 1, 2, 4  # Header flags.
LONG, SHARED, COMPRESSED = 16, 32, 64  # Tag bits.
REFERENCE_LEN = 6
MIN_TAIL = 513  # Minimum number of zeros at the end of the data section.
MAX_FILE, MAX_VALUE, MAX_CONTENT, MAX_DICTIONARY = 1 << 48, 1 << 32, 1 << 24, 1 << 20
MAX_METADATA, MAX_SHARDS, MAX_ADDITIONAL = 1 << 20, 1 << 16, 4

BYTES, STRING, BOOL, I64, F64, I64S, F64S, F32S, STRINGS, EMPTY = range(1, 11)
TYPES = dict(enumerate(("bytes", "string", "bool", "i64", "f64", "list of i64", "list of f64",
                        "list of f32", "list of string", "empty list"), 1))
ALIGNMENT = {I64: 8, F64: 8, I64S: 8, F64S: 8, F32S: 4, STRINGS: 4}
LENGTH = {BOOL: 1, I64: 8, F64: 8, EMPTY: 0}
ELEMENT = {I64: "q", F64: "d", I64S: "q", F64S: "d", F32S: "f"}

# All offsets (`at`, `start`, `end`, `key_end`, `value_at`) count from the start of the file.
Value = namedtuple("Value", "type data")
Line = namedtuple("Line", "at fingerprints offsets records overflow")
Record = namedtuple("Record", "at tag type key key_end value_at length end")
Partition = namedtuple("Partition", "at start end index_hash data_hash")
Additional = namedtuple("Additional", "at kind required start length hash")


class SnapshotError(Exception):
    """An error about a file.

    Attributes:
        code: The error code: "not-a-snapshot", "unsupported" or "corrupt".
        offset: The offset in the file, in bytes.
    """

    def __init__(self, code, offset, what, expected, found):
        super().__init__(f"{code} at offset {offset}: {what}: expected {expected}, found {found}")
        self.code, self.offset = code, offset


def check(condition, offset, what, expected, found, code="corrupt"):
    """Raises a `SnapshotError` unless the condition holds."""
    if not condition:
        raise SnapshotError(code, offset, what, expected, found)


def hash_of(data, seed=0):
    """Returns the XXH3-64 hash of bytes."""
    return xxhash.xxh3_64_intdigest(data, seed)


def align_up(offset, alignment):
    """Returns the first multiple of `alignment` at or after `offset`."""
    return -(-offset // alignment) * alignment


def shard_of(h, shards):
    """Returns the number of the shard of a key with the hash `h`."""
    return (h >> 19 & 0xFFFF) * shards >> 16


def metadata_of(section, at):
    """Decodes metadata.

    Args:
        section: The bytes.
        at: The offset of the bytes in the file, for errors.

    Returns:
        A dict from names to bytes.
    """
    pairs, begin, before = {}, 0, b""
    while begin < len(section):
        rest = section[begin:]
        check(len(rest) >= METADATA_HEAD.size, at + begin, "metadata", "two lengths", rest)
        name_len, value_len = METADATA_HEAD.unpack_from(rest)
        check(1 <= name_len <= 255, at + begin, "length of a name", "1 to 255", name_len)
        name_end = METADATA_HEAD.size + name_len
        end = name_end + value_len
        check(end <= len(rest), at + begin, "end of the value", f"{len(rest)} at most", end)
        name = rest[METADATA_HEAD.size:name_end]
        key = text(name, at + begin)
        check(before < name, at + begin, "name", f"above {before!r}", name)
        pairs[key], before = bytes(rest[name_end:end]), name
        begin += end
    return pairs


class Snapshot:
    """An open snapshot.

    Opening checks the header, lookups check what they read, and `verify` checks everything.

    Args:
        data: The bytes of the file: `bytes` or `mmap`.

    Raises:
        SnapshotError: The header contradicts the format.
    """

    def __init__(self, data):
        self.bytes, self.decompressor = data, None
        self.read_header()
        self.check_sections()
        self.check_additional_sections()
        self.check_counts()
        if self.flags & FLAG_DICTIONARY:
            self.check_dictionary()
        self.lines = self.lines_per_partition << self.partition_bits
        self.index, (self.data, length) = self.sections["index"][0], self.sections["data"]
        self.end = self.data + length

    @classmethod
    def open(cls, path):
        """Opens a file.

        Raises:
            OSError: The file cannot be read.
            SnapshotError: The header contradicts the format.
        """
        with open(path, "rb") as file:
            if not file.read(1):
                return cls(b"")  # An empty file cannot be mapped.
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def read_header(self):
        """Reads the header, and checks its checksum, versions, flags and lengths."""
        data = self.bytes
        check(data[:8] == MAGIC, 0, "magic", MAGIC, data[:8], "not-a-snapshot")
        check(len(data) >= HEADER_LEN, len(data), "length of the file", "512 or more", len(data))
        fields = HEADER.unpack(data[:HEADER_LEN])
        (_, major, self.minor, header_len, self.file_len, self.seed, self.entries,
         self.partition_bits, self.lines_per_partition, self.max_probe, self.flags) = fields[:11]
        self.sections = dict(zip(SECTIONS, zip(fields[11:19:2], fields[12:19:2])))
        (self.dictionary_hash, self.directory_hash, self.key_bytes, self.value_bytes,
         self.stored_value_bytes, self.shared_entries, self.compressed_entries) = fields[19:26]
        self.entries_by_type = fields[26:42]
        index_kind, self.shard, self.shard_count = fields[42:45]
        count, additional, reserved, self.header_hash = fields[45:]

        check(major == 1, 8, "version_major", 1, major, "unsupported")
        hashed = hash_of(data[:504])
        check(self.header_hash == hashed, 504, "header_hash", self.header_hash, hashed)
        check(self.flags <= 7, 52, "flags", "1, 2 and 4 only", self.flags, "unsupported")
        check(index_kind == 0, 304, "index_kind", "0 (lines)", index_kind, "unsupported")
        for code in range(max(TYPES) + 1, 16):
            found = self.entries_by_type[code]
            check(found == 0, 176 + 8 * code, f"values of type {code}", 0, found, "unsupported")
        self.read_additional_sections(count, additional)
        check(header_len == HEADER_LEN, 12, "header_len", HEADER_LEN, header_len)
        check(self.file_len == len(data), 16, "file_len", self.file_len, len(data))
        check(self.file_len <= MAX_FILE, 16, "file_len", "2^48 at most", self.file_len)
        nonzero = next((i for i, byte in enumerate(reserved) if byte), 0)
        self.reserved = (RESERVED_AT + nonzero, reserved[nonzero])

    def read_additional_sections(self, count, entries):
        """Reads the entries of the additional sections, and rejects a required unknown one."""
        check(count <= MAX_ADDITIONAL, 316, "additional_count", MAX_ADDITIONAL, count)
        self.additional = []
        for i in range(count):
            at = ADDITIONAL_AT + ADDITIONAL.size * i
            section = Additional(at, *ADDITIONAL.unpack_from(entries, ADDITIONAL.size * i))
            check(section.required <= 1, at + 4, "required", "0 or 1", section.required)
            check(not section.required or section.kind == METADATA, at, "kind", METADATA,
                  section.kind, "unsupported")
            self.additional.append(section)
        self.unused = entries[ADDITIONAL.size * count:]

    def check_additional_sections(self):
        """Checks the order, offsets and lengths of the additional sections."""
        start, length = self.sections["data"]
        end, kind = start + length, 0
        for section in self.additional:
            at = section.at
            check(section.kind > kind, at, "kind", f"above {kind}", section.kind)
            check(section.start == align_up(end, 64), at + 8, "offset of the section",
                  align_up(end, 64), section.start)
            end, kind = section.start + section.length, section.kind
            check(end <= self.file_len, at + 16, "end of the section", self.file_len, end)
            check(kind != METADATA or 1 <= section.length <= MAX_METADATA, at + 16,
                  "length of the metadata", f"1 to {MAX_METADATA}", section.length)
            check(section is not self.additional[-1] or end == self.file_len, at + 16,
                  "end of the last section", self.file_len, end)
        nonzero = next((i for i, byte in enumerate(self.unused) if byte), None)
        check(nonzero is None, RESERVED_AT - len(self.unused) + (nonzero or 0), "unused entry", 0,
              self.unused)

    def metadata(self):
        """Returns the metadata as a dict from names to bytes."""
        for section in self.additional:
            if section.kind == METADATA:
                found = self.bytes[section.start:section.start + section.length]
                check(hash_of(found) == section.hash, section.at + 24, "checksum", section.hash,
                      hash_of(found))
                return metadata_of(found, section.start)
        return {}

    def check_sections(self):
        """Checks the shape of the index, and the offset and length of each section."""
        bits, lines, probe = self.partition_bits, self.lines_per_partition, self.max_probe
        check(bits <= 28, 40, "partition_bits", "at most 28", bits)
        check(lines >= 1, 44, "lines_per_partition", "at least 1", lines)
        check(probe < min(lines, 256), 48, "max_probe", f"below {min(lines, 256)}", probe)
        dictionary = range(1, MAX_DICTIONARY + 1) if self.flags & FLAG_DICTIONARY else range(1)
        directory, index = DIRECTORY_ENTRY_LEN << bits, LINE_LEN * lines << bits
        data = self.file_len - self.sections["data"][0]
        lengths = (dictionary, range(directory, directory + 1), range(index, index + 1),
                   range(align_up(MIN_TAIL, 64), data + 1, 64))
        end, at = HEADER_LEN, 56
        for (name, (start, length)), expected in zip(self.sections.items(), lengths):
            aligned = align_up(end, 64)
            check(start == aligned, at, f"offset of the {name}", aligned, start)
            end, limit = start + length, self.file_len - start
            check(length <= limit, at + 8, f"length of the {name}", f"{limit} at most", length)
            check(length in expected, at + 8, f"length of the {name}", expected, length)
            at += 16
        check(end == self.file_len or self.additional, 112, "length of the data", data, length)

    def check_counts(self):
        """Checks the counts of entries against each other, the index and the flags."""
        by_type, entries = self.entries_by_type, self.entries
        slots = self.sections["index"][1] // LINE_LEN * SLOTS
        unknown = sum(count for code, count in enumerate(by_type) if code not in TYPES)
        check(unknown == 0, 176, "entries of unknown types", 0, unknown)
        check(sum(by_type) == entries, 176, "entries of all types", entries, sum(by_type))
        check(entries <= slots, 32, "entries", f"{slots} at most", entries)
        flags = {"shared_entries": FLAG_SHARED, "compressed_entries": FLAG_COMPRESSED}
        for name, flag in flags.items():
            count = getattr(self, name)
            expected = f"1 to {entries}" if self.flags & flag else "0"
            check(count <= entries and (count > 0) == (self.flags & flag > 0), COUNTS[name], name,
                  expected, count)
        check(self.shard_count <= MAX_SHARDS, 312, "shards", MAX_SHARDS, self.shard_count)
        most = max(self.shard_count - 1, 0)
        check(self.shard <= most, 308, "shard", f"{most} at most", self.shard)
        at, byte = self.reserved
        check(self.minor > 0 or byte == 0, at, "reserved", 0, byte)

    def get(self, key):
        """Looks up a key.

        Args:
            key: The key, as bytes.

        Returns:
            The `Value`, or None for a missing key.

        Raises:
            SnapshotError: The lookup read damaged bytes.
        """
        found = self.find(key)
        return found and self.value(found[1])

    def find(self, key):
        """Finds the record of a key.

        Args:
            key: The key, as bytes.

        Returns:
            A pair of (line number, slot number) and `Record`, or None for a missing key.
        """
        h = hash_of(key, self.seed)
        number = h * self.lines >> 64
        for _ in range(self.max_probe + 1):
            line = self.line(number)
            for i, (fingerprint, at) in enumerate(zip(line.fingerprints, line.records)):
                if fingerprint == h & 0x7FFF | 0x8000:
                    record = self.record(at)
                    if record.key == key:
                        return (number, i), record
            if not line.overflow >> (h >> 16 & 7) & 1:
                return None
            number = self.next(number)
        return None

    def __iter__(self):
        """Yields pairs of key (bytes) and `Value`, in the order of the file."""
        for number in range(self.lines):
            line = self.line(number)
            for fingerprint, at in zip(line.fingerprints, line.records):
                if fingerprint:
                    record = self.record(at)
                    yield record.key, self.value(record)

    def next(self, number):
        """Returns the line after a line. After the last line of a partition follows its first."""
        index = number % self.lines_per_partition
        return number - index + (index + 1) % self.lines_per_partition

    def line(self, number):
        """Returns a `Line` of the index, with the offsets of its records in the file."""
        at = self.index + LINE_LEN * number
        fields = struct.unpack("<14H 14H B B 6s", self.bytes[at:at + LINE_LEN])
        shift, overflow, base = fields[28:]
        check(shift <= 24, at + 56, "shift", "24 at most", shift)
        offsets, base = fields[14:28], self.data + int.from_bytes(base, "little")
        return Line(at, fields[:14], offsets, [base + (o << shift) for o in offsets], overflow)

    def record(self, at):
        """Returns the `Record` that begins at an offset of the file. Does not decode its value."""
        check(at + 3 <= self.end, at, "record", f"a head before {self.end}", at)
        tag, key_len, length = struct.unpack("<3B", self.bytes[at:at + 3])
        head, code = 3, tag & 15
        if tag & LONG:
            check(at + 8 <= self.end, at, "record", f"a long head before {self.end}", at)
            _, key_len, low, high = struct.unpack("<B H I B", self.bytes[at:at + 8])
            length, head = low | high << 32, 8
            check(length <= MAX_VALUE, at + 3, "length of the value", "2^32 at most", length)
        check(tag < 128 and code in TYPES, at, "tag", "a type, and bit 7 zero", tag)
        key_at, key_end = at + head, at + head + key_len
        after = key_end + (REFERENCE_LEN if tag & SHARED else 0)
        check(key_end <= self.end, at, "end of the key", f"{self.end} at most", key_end)
        check(after <= self.end, key_end, "end of the reference", f"{self.end} at most", after)
        alignment = 1 if tag & COMPRESSED else ALIGNMENT.get(code, 1)
        value_at = key_end
        if tag & SHARED:
            value_at = self.data + int.from_bytes(self.bytes[key_end:after], "little")
        elif tag & LONG:
            value_at = self.data + align_up(key_end - self.data, alignment)
        end = value_at + length
        check((value_at - self.data) % alignment == 0, at, "offset of the value",
              f"a multiple of {alignment}", value_at - self.data)
        check(end <= self.end, key_end if tag & SHARED else at, "end of the value",
              f"{self.end} at most", end)
        return Record(at, tag, code, self.bytes[key_at:key_end], key_end, value_at, length,
                      after if tag & SHARED else end)

    def value(self, record):
        """Returns the decoded `Value` of a record."""
        return Value(record.type, decode(record.type, self.content(record), record.value_at))

    def content(self, record):
        """Returns the bytes of a record's value, decompressed."""
        stored = self.bytes[record.value_at:record.value_at + record.length]
        if not record.tag & COMPRESSED:
            return stored
        import zstandard

        at = record.value_at
        try:
            self.decompressor = (self.decompressor
                                 or zstandard.ZstdDecompressor(self.dictionary()))
            check(stored[:4] == zstandard.FRAME_HEADER, at, "value", "a zstd frame", stored[:4])
            length = zstandard.frame_content_size(stored)
            check(0 <= length <= MAX_CONTENT, at, "content of the frame", "16 MiB at most",
                  length)
            content = self.decompressor.decompress(stored, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise SnapshotError("corrupt", at, "value", "a zstd frame", error) from None
        check(len(content) == length, at, "content of the frame", length, len(content))
        return content

    def dictionary(self):
        """Returns the dictionary for compressed values, or None if the file has none."""
        import zstandard

        start, length = self.sections["dictionary"]
        return zstandard.ZstdCompressionDict(self.bytes[start:start + length]) if length else None

    def check_dictionary(self):
        """Checks the checksum of the dictionary."""
        start, length = self.sections["dictionary"]
        hashed = hash_of(self.bytes[start:start + length])
        check(hashed == self.dictionary_hash, 120, "dictionary_hash", self.dictionary_hash, hashed)

    def verify(self):
        """Checks every byte of the file.

        Raises:
            SnapshotError: The first contradiction to the format.
        """
        Verification(self).run()


def decode(code, stored, at):
    """Decodes the bytes of a value.

    Args:
        code: The type code.
        stored: The bytes, decompressed.
        at: The offset of the value in the file, for errors.

    Returns:
        bytes, str, bool, int, float or list, depending on the type.
    """
    size = LENGTH.get(code, len(stored))
    check(len(stored) == size, at, f"length of a {TYPES[code]}", size, len(stored))
    if code == BYTES:
        return stored
    if code == STRING:
        return text(stored, at)
    if code == BOOL:
        check(stored[0] <= 1, at, "bool", "0 or 1", stored[0])
        return stored[0] == 1
    if code == STRINGS:
        return strings(stored, at)
    if code == EMPTY:
        return []
    size = struct.calcsize(ELEMENT[code])
    check(len(stored) % size == 0 and stored, at, f"length of a {TYPES[code]}",
          f"a multiple of {size}, not 0", len(stored))
    elements = struct.unpack(f"<{len(stored) // size}{ELEMENT[code]}", stored)
    return elements[0] if code in LENGTH else list(elements)


def strings(stored, at):
    """Decodes a list of strings."""
    count = int.from_bytes(stored[:4], "little")
    start = 4 + 4 * count
    check(len(stored) >= start > 4, at, "number of strings", f"1 to {len(stored) // 4 - 1}", count)
    ends = struct.unpack(f"<{count}I", stored[4:start])
    bounds = (0, *ends)
    check(list(bounds) == sorted(bounds) and ends[-1] == len(stored) - start, at, "ends of strings",
          f"an order that ends with {len(stored) - start}", ends)
    return [text(stored[start + a:start + b], at) for a, b in zip(bounds, ends)]


def text(stored, at):
    """Decodes UTF-8."""
    try:
        return stored.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SnapshotError("corrupt", at, "text", "UTF-8", error.reason) from None


class Verification:
    """The verification of a file."""

    def __init__(self, snapshot):
        self.snapshot, self.bytes, self.totals = snapshot, snapshot.bytes, Counter()

    def run(self):
        """Checks all sections and the counts of the header."""
        snapshot, end = self.snapshot, HEADER_LEN
        for start, length in snapshot.sections.values():
            self.zeros(end, start)
            end = start + length
        snapshot.check_dictionary()
        for section in snapshot.additional:
            self.zeros(end, section.start)
            end = section.start + section.length
            hashed = hash_of(self.bytes[section.start:end])
            check(hashed == section.hash, section.at + 24, "checksum", section.hash, hashed)
        snapshot.metadata()
        for number, partition in enumerate(self.partitions()):
            self.partition(number, partition)
        for name, at in COUNTS.items():
            found = getattr(snapshot, name)
            check(found == self.totals[name], at, name, found, self.totals[name])
        by_type = tuple(self.totals[code] for code in range(16))
        check(snapshot.entries_by_type == by_type, 176, "entries_by_type",
              snapshot.entries_by_type, by_type)

    def partitions(self):
        """Checks the directory and the gaps between partitions. Returns a list of `Partition`."""
        snapshot, out, expected = self.snapshot, [], 0
        start, length = snapshot.sections["directory"]
        hashed, found = hash_of(self.bytes[start:start + length]), snapshot.directory_hash
        check(hashed == found, 128, "directory_hash", found, hashed)
        for at in range(start, start + length, DIRECTORY_ENTRY_LEN):
            offset, data_len, *hashes = struct.unpack_from("<4Q", self.bytes, at)
            check(offset == expected, at, "data_offset", expected, offset)
            begin, end = snapshot.data + offset, snapshot.data + offset + data_len
            check(end <= snapshot.end, at + 8, "end of the partition", snapshot.end, end)
            out.append(Partition(at, begin, end, *hashes))
            expected = align_up(offset + data_len, 64)
            self.zeros(end, min(snapshot.data + expected, snapshot.end))
        length, found = align_up(expected + MIN_TAIL, 64), snapshot.end - snapshot.data
        check(found == length, 112, "length of the data", found, length)
        self.zeros(snapshot.data + expected, snapshot.end)
        return out

    def partition(self, number, partition):
        """Checks the checksums, lines and records of a partition."""
        snapshot, count = self.snapshot, self.snapshot.lines_per_partition
        start = snapshot.index + LINE_LEN * count * number
        hashed = hash_of(self.bytes[start:start + LINE_LEN * count])
        check(partition.index_hash == hashed, partition.at + 16, "index_hash",
              partition.index_hash, hashed)
        hashed = hash_of(self.bytes[partition.start:partition.end])
        check(partition.data_hash == hashed, partition.at + 24, "data_hash",
              partition.data_hash, hashed)
        end = partition.start
        for line in range(count * number, count * number + count):
            end = self.line(line, end, partition.end)
        self.zeros(end, partition.end)

    def line(self, number, end, limit):
        """Checks a line and its records.

        Args:
            number: The number of the line.
            end: The offset at which the last record before the line ends.
            limit: The offset at which the data of the partition ends.

        Returns:
            The offset at which the last record ends.
        """
        snapshot, line = self.snapshot, self.snapshot.line(number)
        used = SLOTS - line.fingerprints.count(0)
        check(all(line.fingerprints[:used]), line.at, "fingerprints", "used slots first",
              line.fingerprints)
        check(not any(line.offsets[used:]), line.at + 28 + 2 * used, "offsets of unused slots", 0,
              line.offsets)
        for i, at in enumerate(line.records[:used]):
            check(end <= at < limit, line.at + 28 + 2 * i, "record", f"{end} up to {limit}", at)
            self.zeros(end, at)
            record = snapshot.record(at)
            check(record.end <= limit, at, "end of the record", f"{limit} at most", record.end)
            shard = shard_of(hash_of(record.key, snapshot.seed), snapshot.shard_count)
            check(shard == snapshot.shard, at, "shard of the key", snapshot.shard, shard)
            found = snapshot.find(record.key)
            check(found and found[0] == (number, i), at, "key", "one that lookups find", record.key)
            self.record(record)
            end = record.end
        return end

    def record(self, record):
        """Checks the value and the padding of a record, and counts the entry."""
        content, totals = self.snapshot.content(record), self.totals
        decode(record.type, content, record.value_at)
        totals.update({
            "entries": 1,
            record.type: 1,
            "key_bytes": len(record.key),
            "value_bytes": len(content),
            "stored_value_bytes": 0 if record.tag & SHARED else record.length,
            "shared_entries": int(record.tag & SHARED > 0),
            "compressed_entries": int(record.tag & COMPRESSED > 0),
        })
        if not record.tag & SHARED:
            self.zeros(record.key_end, record.value_at)

    def zeros(self, start, end):
        """Checks that the bytes between two offsets are zero."""
        between = self.bytes[start:end]
        at = start + len(between) - len(between.lstrip(b"\0"))
        check(at == end, at, "byte between", 0, self.bytes[at:at + 1])
