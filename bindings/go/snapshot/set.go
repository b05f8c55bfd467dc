package snapshot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
)

// set is an open set of shards.
type set struct {
	keyHasher
	files    []*file
	manifest *manifest
	path     string // the path of the manifest
}

// errNoManifest means that the manifest was replaced by a file of another kind.
var errNoManifest = errors.New("not a manifest any more")

// isManifest returns whether the first bytes are those of a manifest.
func (m mapping) isManifest(path string) (found bool, err error) {
	err = protect(func() error {
		found = bytes.HasPrefix(m.bytes, []byte(manifestMagic))
		return nil
	}, &file{mapping: m, path: path})
	return found, err
}

// openSet opens the files of the set with the manifest in m, and unmaps m. A writer removes the
// shards of the manifest that it replaces: if one is missing, openSet reads the manifest again.
func openSet(m mapping, path string, settings *settings) (*set, error) {
	var before []byte
	var missing error // the error for a shard of the manifest in before
	for {
		current, err := takeBytes(m, path)
		if err != nil {
			return nil, err
		}
		if missing != nil && bytes.Equal(before, current) {
			return nil, missing
		}
		decoded, err := decodeManifest(current, path)
		if err != nil {
			return nil, err
		}
		opened := &set{keyHasher: newKeyHasher(decoded.seed), manifest: decoded, path: path}
		if err = opened.openShards(settings); err == nil {
			return opened, nil
		}
		opened.abandon()
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		before, missing = current, err
		if m, err = settings.openMapping(path, Mapped); err != nil {
			return nil, err
		}
		if isSet, err := m.isManifest(path); err != nil || !isSet {
			unmap(m)
			return nil, cmp.Or(err, errNoManifest)
		}
	}
}

// takeBytes copies the bytes of a manifest and unmaps it.
func takeBytes(m mapping, path string) (copied []byte, err error) {
	err = protect(func() error {
		copied = bytes.Clone(m.bytes)
		return nil
	}, &file{mapping: m, path: path})
	unmap(m)
	return copied, err
}

// openShards opens all shards.
func (s *set) openShards(settings *settings) error {
	folder := filepath.Dir(s.path)
	for number, entry := range s.manifest.shards {
		path := filepath.Join(folder, entry.fileName(number))
		m, err := settings.openMapping(path, settings.residency)
		if err != nil {
			return err
		}
		f, err := openFile(m, path)
		if err != nil {
			return err
		}
		f.faultErrors = settings.faultErrors
		s.files = append(s.files, f)
		if err := s.checkShard(f, number, entry); err != nil {
			return err
		}
	}
	return nil
}

// checkShard compares a shard with the manifest.
func (s *set) checkShard(f *file, number int, entry shardEntry) error {
	h := f.header
	for _, c := range []struct {
		at              uint64
		what            string
		expected, found uint64
	}{
		{atHeaderHash, "checksum of the header", entry.headerHash, h.hash},
		{atSeed, "seed", s.seed, h.seed},
		{atFileLen, "file length", entry.fileLen, h.fileLen},
		{atEntries, "number of entries", entry.entries, h.entries},
	} {
		if c.expected != c.found {
			return corrupt(f.path, c.at, fmt.Sprintf("the %s in the manifest, %d", c.what,
				c.expected), strconv.FormatUint(c.found, 10))
		}
	}
	if shards := len(s.manifest.shards); int(h.shards) != shards || int(h.shard) != number {
		return corrupt(f.path, atShard, fmt.Sprintf("shard %d of %d", number, shards),
			fmt.Sprintf("shard %d of %d", h.shard, h.shards))
	}
	return nil
}

// fileOf returns the file for keys with this hash.
func (s *set) fileOf(hash uint64) *file {
	return s.files[shardOf(hash, len(s.files))]
}

// release unmaps each file when nothing refers to it any more.
func (s *set) release() {
	for _, f := range s.files {
		f.release()
	}
}

// abandon unmaps the files of a set that could not be opened.
func (s *set) abandon() {
	for _, f := range s.files {
		unmap(f.mapping)
	}
}
