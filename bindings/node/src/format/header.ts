/** The header of a file: decoding and validation. */

import { notASnapshot } from "../error.js";
import { LAST_CODE } from "../values/types.js";
import { Fields, showMagic } from "./fields.js";
import {
  ADDITIONAL,
  ADDITIONAL_LEN,
  DIRECTORY_ENTRY_LEN,
  FLAG_COMPRESSED,
  FLAG_DICTIONARY,
  FLAG_SHARED,
  HEADER,
  HEADER_LEN,
  KIND_METADATA,
  KNOWN_FLAGS,
  LINE_LEN,
  MAGIC,
  MAX_ADDITIONAL,
  MAX_DICTIONARY_LEN,
  MAX_FILE_LEN,
  MAX_METADATA_LEN,
  MAX_PARTITION_BITS,
  MAX_PROBE,
  MAX_SHARDS,
  MAX_SHORT_RECORD,
  SECTION_ALIGN,
  SLOTS,
  VERSION_MAJOR,
  VERSION_MINOR,
  alignUp,
} from "./layout.js";

/** A part of a file. */
export interface Section {
  readonly offset: number;
  readonly length: number;
}

/** An additional section, and the offset of its entry in the header. */
export interface AdditionalSection {
  readonly at: number;
  readonly kind: number;
  readonly section: Section;
  readonly checksum: bigint;
}

/** The validated header of a file. */
export interface Header {
  readonly versionMinor: number;
  readonly fileLen: number;
  readonly seed: bigint;
  readonly entries: number;
  readonly partitions: number;
  readonly linesPerPartition: number;
  readonly maxProbe: number;
  readonly flags: number;
  readonly dictionary: Section;
  readonly directory: Section;
  readonly index: Section;
  readonly data: Section;
  readonly dictionaryHash: bigint;
  readonly directoryHash: bigint;
  readonly keyBytes: bigint;
  readonly valueBytes: bigint;
  readonly storedValueBytes: bigint;
  readonly sharedEntries: number;
  readonly compressedEntries: number;
  readonly entriesByType: readonly number[];
  /** The number of the shard, and the number of shards of its set, or 0 and 0. */
  readonly shard: number;
  readonly shards: number;
  readonly additional: readonly AdditionalSection[];
  readonly hash: bigint;
}

/** Returns whether bytes begin with a magic of 8 bytes. */
export function hasMagic(bytes: Uint8Array, magic: readonly number[]): boolean {
  return bytes.length >= magic.length && magic.every((byte, i) => bytes[i] === byte);
}

/**
 * Decodes and validates the header of a file, in the order of the format's page.
 *
 * @param bytes the first bytes of the file, at least 512 if it has as many
 * @param fileLen length of the file in bytes
 * @throws SnapshotError with the code `not-a-snapshot`, `unsupported` or `corrupt`
 */
export function readHeader(bytes: Uint8Array, fileLen: number, path: string): Header {
  if (!hasMagic(bytes, MAGIC)) {
    throw notASnapshot(path, showMagic(Uint8Array.from(MAGIC)), showMagic(bytes));
  }
  const raw = new Fields(bytes.subarray(0, HEADER_LEN), path);
  if (bytes.length < HEADER_LEN) {
    const found = `the end of the file after ${bytes.length} bytes`;
    throw raw.corrupt(bytes.length, `a header of ${HEADER_LEN} bytes`, found);
  }
  raw.checkVersion(HEADER.versionMajor, VERSION_MAJOR);
  raw.checkHash(HEADER.hash, "the header");
  checkFeatures(raw);
  raw.requireEqual(HEADER.headerLen, "the header length", HEADER_LEN, raw.u32(HEADER.headerLen));
  raw.requireEqual(HEADER.fileLen, "the file length", raw.u64(HEADER.fileLen), BigInt(fileLen));
  raw.within(HEADER.fileLen, "the file length", 0, MAX_FILE_LEN, fileLen);
  checkGeometry(raw);
  const header = decode(raw);
  checkSections(raw, header);
  checkAdditional(raw, header);
  checkCounts(raw, header);
  const shards = header.shards;
  raw.within(HEADER.shards, "the number of shards", 0, MAX_SHARDS, shards);
  raw.within(HEADER.shard, "the number of the shard", 0, Math.max(shards - 1, 0), header.shard);
  if (header.versionMinor <= VERSION_MINOR) raw.checkZeros(HEADER.reserved, HEADER.hash);
  return header;
}

/** Rejects what this version does not know. */
function checkFeatures(raw: Fields): void {
  const flags = raw.u32(HEADER.flags);
  if ((flags & ~KNOWN_FLAGS) !== 0) {
    throw raw.unsupported(HEADER.flags, "flags 1, 2 and 4 only", `flags ${flags}`);
  }
  const kind = raw.u32(HEADER.indexKind);
  if (kind !== 0) {
    throw raw.unsupported(HEADER.indexKind, "an index of kind 0 (lines)", `kind ${kind}`);
  }
  for (let code = LAST_CODE + 1; code < 16; code++) {
    const at = HEADER.entriesByType + 8 * code;
    if (raw.u64(at) !== 0n) {
      throw raw.unsupported(at, `types 1 to ${LAST_CODE}`, `values of type ${code}`);
    }
  }
  const count = raw.u32(HEADER.additionalCount);
  raw.within(HEADER.additionalCount, "additional sections", 0, MAX_ADDITIONAL, count);
  for (let i = 0; i < count; i++) {
    const at = HEADER.additional + ADDITIONAL_LEN * i;
    const required = raw.u32(at + ADDITIONAL.required);
    raw.within(at + ADDITIONAL.required, "`required`", 0, 1, required);
    const sectionKind = raw.u32(at + ADDITIONAL.kind);
    if (required === 1 && sectionKind !== KIND_METADATA) {
      const expected = `a required section of kind ${KIND_METADATA} (metadata)`;
      throw raw.unsupported(at + ADDITIONAL.kind, expected, `kind ${sectionKind}`);
    }
  }
}

function checkGeometry(raw: Fields): void {
  const bits = raw.u32(HEADER.partitionBits);
  raw.within(HEADER.partitionBits, "partition bits", 0, MAX_PARTITION_BITS, bits);
  const lines = raw.u32(HEADER.linesPerPartition);
  if (lines === 0) throw raw.corrupt(HEADER.linesPerPartition, "at least one line", 0);
  const maxProbe = Math.min(MAX_PROBE, lines - 1);
  raw.within(HEADER.maxProbe, "the probe length", 0, maxProbe, raw.u32(HEADER.maxProbe));
}

/** Decodes a header whose number of additional sections was checked. */
function decode(raw: Fields): Header {
  const section = (at: number): Section => ({ offset: raw.number(at), length: raw.number(at + 8) });
  const additional = (i: number): AdditionalSection => {
    const at = HEADER.additional + ADDITIONAL_LEN * i;
    const kind = raw.u32(at + ADDITIONAL.kind);
    const checksum = raw.u64(at + ADDITIONAL.checksum);
    return { at, kind, section: section(at + ADDITIONAL.offset), checksum };
  };
  const count = raw.u32(HEADER.additionalCount);
  return {
    versionMinor: raw.u16(HEADER.versionMinor),
    fileLen: raw.number(HEADER.fileLen),
    seed: raw.u64(HEADER.seed),
    entries: raw.number(HEADER.entries),
    partitions: 2 ** raw.u32(HEADER.partitionBits),
    linesPerPartition: raw.u32(HEADER.linesPerPartition),
    maxProbe: raw.u32(HEADER.maxProbe),
    flags: raw.u32(HEADER.flags),
    dictionary: section(HEADER.dictionary),
    directory: section(HEADER.directory),
    index: section(HEADER.index),
    data: section(HEADER.data),
    dictionaryHash: raw.u64(HEADER.dictionaryHash),
    directoryHash: raw.u64(HEADER.directoryHash),
    keyBytes: raw.u64(HEADER.keyBytes),
    valueBytes: raw.u64(HEADER.valueBytes),
    storedValueBytes: raw.u64(HEADER.storedValueBytes),
    sharedEntries: raw.number(HEADER.sharedEntries),
    compressedEntries: raw.number(HEADER.compressedEntries),
    entriesByType: Array.from({ length: 16 }, (_, i) => raw.number(HEADER.entriesByType + 8 * i)),
    shard: raw.u32(HEADER.shard),
    shards: raw.u32(HEADER.shards),
    additional: Array.from({ length: count }, (_, i) => additional(i)),
    hash: raw.u64(HEADER.hash),
  };
}

/** Checks the offset and the length of each of the first four sections. */
function checkSections(raw: Fields, header: Header): void {
  const { fileLen, partitions, linesPerPartition } = header;
  const maxDictionary = (header.flags & FLAG_DICTIONARY) === 0 ? 0 : MAX_DICTIONARY_LEN;
  // Products are at most 2^66. Above 2^53 they are rounded, but exceed every file.
  const directory = DIRECTORY_ENTRY_LEN * partitions;
  const index = LINE_LEN * linesPerPartition * partitions;
  const minData = alignUp(MAX_SHORT_RECORD, SECTION_ALIGN);
  let expected = HEADER_LEN;
  for (const [at, what, section, min, max] of [
    [HEADER.dictionary, "dictionary", header.dictionary, Math.min(maxDictionary, 1), maxDictionary],
    [HEADER.directory, "directory", header.directory, directory, directory],
    [HEADER.index, "index", header.index, index, index],
    [HEADER.data, "data", header.data, minData, MAX_FILE_LEN],
  ] as const) {
    raw.requireEqual(at, `the offset of the ${what}`, BigInt(expected), raw.u64(at));
    const room = Math.max(fileLen - section.offset, 0);
    raw.within(at + 8, `the length of the ${what}`, 0, room, section.length);
    raw.within(at + 8, `the length of the ${what}`, min, max, section.length);
    expected = alignUp(section.offset + section.length, SECTION_ALIGN);
  }
  const { offset, length } = header.data;
  const isLast = header.additional.length === 0;
  const rest = isLast ? fileLen - offset : length;
  raw.checkLength(HEADER.data + 8, "data", length, alignUp(rest, SECTION_ALIGN));
}

/** Checks the order, the offsets and the lengths of the additional sections. */
function checkAdditional(raw: Fields, header: Header): void {
  const { additional, fileLen, data } = header;
  let end = data.offset + data.length;
  let minKind = 0;
  for (const [i, { at, kind, section }] of additional.entries()) {
    if (kind <= minKind) throw raw.corrupt(at, `a kind above ${minKind}`, kind);
    const offset = alignUp(end, SECTION_ALIGN);
    const field = at + ADDITIONAL.offset;
    raw.requireEqual(field, "the offset of the section", BigInt(offset), raw.u64(field));
    const lengthAt = at + ADDITIONAL.length;
    const room = Math.max(fileLen - offset, 0);
    raw.within(lengthAt, "the length of the section", 0, room, section.length);
    if (kind === KIND_METADATA) {
      raw.within(lengthAt, "the length of the metadata", 1, MAX_METADATA_LEN, section.length);
    }
    if (i === additional.length - 1) {
      raw.checkLength(lengthAt, "last section", section.length, room);
    }
    end = section.offset + section.length;
    minKind = kind;
  }
  raw.checkZeros(HEADER.additional + ADDITIONAL_LEN * additional.length, HEADER.reserved);
}

/** Checks the counts of entries against each other, the index and the flags. */
function checkCounts(raw: Fields, header: Header): void {
  const { entries, flags, index } = header;
  const at = HEADER.entriesByType;
  let all = 0n;
  for (let code = 0; code < 16; code++) all += raw.u64(at + 8 * code);
  const unknown = raw.u64(at);
  raw.requireEqual(at, "the entries of all types", raw.u64(HEADER.entries), all);
  raw.requireEqual(at, "the entries of known types", all, all - unknown);
  const slots = (index.length / LINE_LEN) * SLOTS;
  raw.within(HEADER.entries, "the entries", 0, slots, entries);
  for (const [field, what, flag] of [
    [HEADER.sharedEntries, "the shared entries", FLAG_SHARED],
    [HEADER.compressedEntries, "the compressed entries", FLAG_COMPRESSED],
  ] as const) {
    const isSet = (flags & flag) !== 0;
    raw.within(field, what, isSet ? 1 : 0, isSet ? entries : 0, raw.number(field));
  }
}
