package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Metadata returns the metadata that the writer was given: a value for each name. The map and its
// values are copies. It is empty if the snapshot has no metadata.
//
// The error has [CodeCorrupt] if the metadata is damaged, [CodeUnreadable] if a page cannot be
// read, or is [ErrClosed].
func (s *Snapshot) Metadata() (map[string][]byte, error) {
	if set := s.set.Load(); set != nil {
		return set.metadata()
	}
	if f := s.file.Load(); f != nil {
		return f.metadata()
	}
	return nil, ErrClosed
}

func (s *set) metadata() (map[string][]byte, error) {
	return decodeMetadata(s.manifest.metadata, s.path, s.manifest.metadataAt)
}

func (f *file) metadata() (pairs map[string][]byte, err error) {
	err = protect(func() error {
		number, entry, ok := f.header.metadata()
		if !ok {
			pairs = map[string][]byte{}
			return nil
		}
		if err := f.checkAdditionalHash(number, entry); err != nil {
			return err
		}
		var err error
		pairs, err = decodeMetadata(f.section(entry.section), f.path, entry.section.offset)
		return err
	}, f)
	return pairs, err
}

// checkAdditionalHash checks the checksum of an additional section.
func (f *file) checkAdditionalHash(number int, entry additionalSection) error {
	if computed := checksum(f.section(entry.section)); computed != entry.checksum {
		at := uint64(atAdditional + number*additionalEntryLen + additionalAtChecksum)
		return checksumError(f.path, at, fmt.Sprintf("the additional section %d", number),
			entry.checksum, computed)
	}
	return nil
}

// decodeMetadata decodes metadata that begins at an offset of the file.
func decodeMetadata(section []byte, path string, at uint64) (map[string][]byte, error) {
	pairs := map[string][]byte{}
	before := ""
	for len(section) > 0 {
		if len(section) < metadataHeadLen {
			return nil, corrupt(path, at, "the lengths of a name and a value",
				fmt.Sprintf("%d bytes", len(section)))
		}
		nameLen := uint64(binary.LittleEndian.Uint16(section))
		valueLen := uint64(binary.LittleEndian.Uint32(section[2:]))
		if nameLen < 1 || nameLen > maxMetadataNameLen {
			return nil, corrupt(path, at, "a name of 1 to 255 bytes",
				fmt.Sprintf("%d bytes", nameLen))
		}
		end := metadataHeadLen + nameLen + valueLen
		if end > uint64(len(section)) {
			return nil, corrupt(path, at, "a name and a value within the metadata",
				fmt.Sprintf("%d and %d bytes", nameLen, valueLen))
		}
		name := string(section[metadataHeadLen : metadataHeadLen+nameLen])
		if !utf8.ValidString(name) {
			return nil, corrupt(path, at, "a name in UTF-8", fmt.Sprintf("%q", name))
		}
		if name <= before {
			return nil, corrupt(path, at, "names in ascending order, each once",
				fmt.Sprintf("%q after %q", name, before))
		}
		pairs[name] = bytes.Clone(section[metadataHeadLen+nameLen : end])
		before, section = name, section[end:]
		at += end
	}
	return pairs, nil
}
