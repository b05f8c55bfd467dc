package snapshot

import (
	"runtime"
	"unsafe"
)

// file is one open file: a snapshot, or a shard of one. It does not change after it is opened.
//
// Lookups hold a pointer to the file until they have read its last byte, and the memory is unmapped
// only when no such pointer is left. See release.
type file struct {
	keyHasher

	index   unsafe.Pointer // the lines of the index
	lines   uint64         // number of lines, at least one
	data    unsafe.Pointer // the data section
	windows uint64         // number of offsets of the data followed by maxShortRecord bytes

	faultErrors bool // whether lookups turn faults into errors

	alone        [1]*file // this file, for what reads all files of a snapshot
	dataBytes    []byte
	header       *header
	decompressor *decompressor // nil if the file has no compressed values
	mapping      mapping
	path         string
}

// openFile validates the header and the dictionary of a mapped file. If that fails, it unmaps the
// file.
func openFile(m mapping, path string) (*file, error) {
	f := &file{mapping: m, path: path}
	f.alone[0] = f
	if err := protect(f.open, f); err != nil {
		unmap(m)
		return nil, err
	}
	return f, nil
}

func (f *file) open() error {
	raw, err := newRawHeader(f.mapping.bytes, f.path)
	if err != nil {
		return err
	}
	if f.header, err = raw.validate(uint64(len(f.mapping.bytes))); err != nil {
		return err
	}
	if err = f.openDecompressor(); err != nil {
		return err
	}
	f.keyHasher = newKeyHasher(f.header.seed)
	f.lines = f.header.index.length / lineLen
	f.index = unsafe.Pointer(unsafe.SliceData(f.section(f.header.index)))
	f.dataBytes = f.section(f.header.data)
	f.data = unsafe.Pointer(unsafe.SliceData(f.dataBytes))
	f.windows = uint64(len(f.dataBytes)) - maxShortRecord + 1
	return nil
}

// openDecompressor checks and prepares the dictionary.
func (f *file) openDecompressor() error {
	h := f.header
	if h.flags&(flagZstd|flagDictionary) == 0 {
		return nil
	}
	if h.flags&flagDictionary == 0 {
		var err error
		f.decompressor, err = plainDecompressor()
		return err
	}
	dictionary := f.section(h.dictionary)
	if computed := checksum(dictionary); computed != h.dictionaryHash {
		return checksumError(f.path, atDictionaryHash, "the dictionary", h.dictionaryHash, computed)
	}
	var err error
	if f.decompressor, err = newDecompressor(dictionary); err != nil {
		return corrupt(f.path, h.dictionary.offset, "a zstd dictionary", err.Error())
	}
	return nil
}

// section returns the bytes of a section, which must be within the file.
func (f *file) section(s section) []byte {
	return f.mapping.bytes[s.offset:s.end():s.end()]
}

// unmapNow unmaps the file. No lookup may use it, now or later.
func (f *file) unmapNow() {
	unmap(f.mapping)
}

// release unmaps the file when no lookup uses it: when the garbage collector finds that the file is
// unreachable. It must be called once.
func (f *file) release() {
	if f.mapping.isMapped {
		runtime.AddCleanup(f, unmap, f.mapping)
	}
}
