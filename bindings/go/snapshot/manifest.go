package snapshot

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// shardEntry is a shard as the manifest describes it.
type shardEntry struct {
	fileLen, entries, headerHash uint64
}

// fileName returns the name of the file of a shard.
func (e shardEntry) fileName(number int) string {
	return fmt.Sprintf("%05d-%016x.shard", number, e.headerHash)
}

// manifest is a validated manifest.
type manifest struct {
	versionMinor uint16
	seed         uint64
	shards       []shardEntry
	metadata     []byte
	metadataAt   uint64 // offset of the metadata in the file
}

// decodeManifest validates the bytes of a manifest, which begin with its magic, in the order of the
// format page.
func decodeManifest(file []byte, path string) (*manifest, error) {
	if len(file) < manifestLen {
		return nil, tooShort(path, len(file), manifestLen)
	}
	r := &rawHeader{bytes: file[:manifestLen], path: path}
	if err := r.checkManifest(uint64(len(file))); err != nil {
		return nil, err
	}
	m := &manifest{versionMinor: r.u16(atVersionMinor), seed: r.u64(atSeed)}
	tableLen := manifestEntryLen * int(r.u32(manifestAtShards))
	table := file[manifestLen : manifestLen+tableLen]
	m.metadataAt = uint64(manifestLen + tableLen)
	m.metadata = file[m.metadataAt:]
	if stored, found := r.u64(manifestAtTableHash), checksum(table); stored != found {
		return nil, checksumError(path, manifestAtTableHash, "the table", stored, found)
	}
	if stored, found := r.u64(manifestAtMetaHash), checksum(m.metadata); stored != found {
		return nil, checksumError(path, manifestAtMetaHash, "the metadata", stored, found)
	}
	entries, overflow := uint64(0), uint64(0)
	for ; len(table) > 0; table = table[manifestEntryLen:] {
		entry := shardEntry{
			fileLen:    binary.LittleEndian.Uint64(table[shardAtFileLen:]),
			entries:    binary.LittleEndian.Uint64(table[shardAtEntries:]),
			headerHash: binary.LittleEndian.Uint64(table[shardAtHeaderHash:]),
		}
		var carry uint64
		entries, carry = bits.Add64(entries, entry.entries, 0)
		overflow |= carry
		m.shards = append(m.shards, entry)
	}
	if stored := r.u64(atEntries); overflow != 0 || stored != entries {
		return nil, r.corrupt(atEntries, fmt.Sprintf("%d entries in all shards", stored), entries)
	}
	return m, nil
}

// checkManifest checks the header of a manifest.
func (r *rawHeader) checkManifest(fileLen uint64) error {
	if major := r.u16(atVersionMajor); major != versionMajor {
		return unsupported(r.path, atVersionMajor, fmt.Sprintf("format version %d", versionMajor),
			fmt.Sprintf("version %d.%d", major, r.u16(atVersionMinor)))
	}
	computed := checksum(r.bytes[:manifestAtHeaderHash])
	if stored := r.u64(manifestAtHeaderHash); stored != computed {
		return checksumError(r.path, manifestAtHeaderHash, "the manifest", stored, computed)
	}
	if flags := r.u32(manifestAtFlags); flags != 0 {
		return unsupported(r.path, manifestAtFlags, "only flags that this version knows",
			fmt.Sprintf("flags %#x", flags))
	}
	if err := r.require(atHeaderLen, "the header length", manifestLen,
		uint64(r.u32(atHeaderLen))); err != nil {
		return err
	}
	if err := r.require(atFileLen, "the file length", r.u64(atFileLen), fileLen); err != nil {
		return err
	}
	shards := uint64(r.u32(manifestAtShards))
	if err := r.within(manifestAtShards, "shards", 1, maxShards, shards); err != nil {
		return err
	}
	metadataLen := r.u64(manifestAtMetadataLen)
	if err := r.atMost(manifestAtMetadataLen, "bytes of metadata", maxMetadataLen,
		metadataLen); err != nil {
		return err
	}
	if err := r.require(atFileLen, "the file length",
		manifestLen+manifestEntryLen*shards+metadataLen, fileLen); err != nil {
		return err
	}
	if r.u16(atVersionMinor) > versionMinor {
		return nil
	}
	return r.checkZeros(manifestAtReserved, manifestAtHeaderHash)
}
