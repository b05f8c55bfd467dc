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

// openSet opens the files of the set with the manifest in m, and unmaps m. The shards are in the
// folder of the real path of the manifest, so symbolic links are followed. A writer removes the
// shards of the manifest that it replaces, and a link may be switched to another set: if a shard is
// missing, openSet reads the path again.
func openSet(m mapping, path string, settings *settings) (*set, error) {
	var before []byte
	var resolvedBefore string
	var missing error // the error for a shard of the manifest in before
	for {
		current, err := takeBytes(m, path)
		if err != nil {
			return nil, err
		}
		resolved := realPath(path)
		if missing != nil && resolved == resolvedBefore && bytes.Equal(before, current) {
			return nil, missing
		}
		folder := filepath.Dir(path)
		if resolved != "" && filepath.Dir(resolved) != realPath(folder) {
			folder = filepath.Dir(resolved)
			if current, err = readLinked(resolved, path, current, settings); err != nil {
				return nil, err
			}
		}
		decoded, err := decodeManifest(current, path)
		if err != nil {
			return nil, err
		}
		opened := &set{keyHasher: newKeyHasher(decoded.seed), manifest: decoded, path: path}
		if err = opened.openShards(folder, settings); err == nil {
			return opened, nil
		}
		opened.abandon()
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		before, resolvedBefore, missing = current, resolved, err
		if m, err = settings.openLinked(path, Mapped); err != nil {
			return nil, err
		}
		if isSet, err := m.isManifest(path); err != nil || !isSet {
			unmap(m)
			return nil, cmp.Or(err, errNoManifest)
		}
	}
}

// realPath returns the path of a file without symbolic links, or "" if the system cannot determine
// it, for instance because the file was removed.
func realPath(path string) string {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return resolved
}

// readLinked returns the bytes of the manifest at resolved, the real path of path. Its errors name
// path. If the manifest is no longer there, readLinked returns current, the bytes that were at path
// before: then the shards are missing, too, or these bytes are still valid.
func readLinked(resolved, path string, current []byte, settings *settings) ([]byte, error) {
	m, err := settings.openMapping(resolved, Mapped)
	if errors.Is(err, fs.ErrNotExist) {
		return current, nil
	}
	if failed := (*Error)(nil); errors.As(err, &failed) {
		return nil, ioError(path, failed.Operation, failed.Err)
	}
	if err != nil {
		return nil, err
	}
	isSet, err := m.isManifest(path)
	if err != nil || !isSet {
		unmap(m)
		return current, err
	}
	return takeBytes(m, path)
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

// openShards opens all shards, which are in a folder.
func (s *set) openShards(folder string, settings *settings) error {
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
