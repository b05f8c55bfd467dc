package snapshot

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"unsafe"
)

// mapping has the bytes of a file. They begin at a multiple of 8, the largest alignment of a value.
type mapping struct {
	bytes    []byte
	isMapped bool // whether the memory is not that of the Go heap
}

// contains returns whether an address is in the mapping.
func (m mapping) contains(address uintptr) bool {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(m.bytes)))
	return address-begin < uintptr(len(m.bytes))
}

// copyOf returns a mapping with a copy of the bytes.
func copyOf(bytes []byte) mapping {
	return mapping{bytes: append(alignedBytes(len(bytes)), bytes...)}
}

// maxLookups is the maximum number of lookups of a path at which no file is found. While the system
// resolves the path, a symbolic link in it may be switched to another file and the old one removed.
const maxLookups = 8

// openLinked maps the file at the path of the caller, in which a link may be switched.
func (s *settings) openLinked(path string, residency Residency) (mapping, error) {
	m, err := s.openMapping(path, residency)
	for i := 1; i < maxLookups && errors.Is(err, fs.ErrNotExist); i++ {
		m, err = s.openMapping(path, residency)
	}
	return m, err
}

// openMapping maps a regular file.
func openMapping(path string, residency Residency) (mapping, error) {
	file, err := openRegular(path)
	if err != nil {
		return mapping{}, ioError(path, "open", reason(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return mapping{}, ioError(path, "stat", reason(err))
	}
	if !info.Mode().IsRegular() {
		return mapping{}, ioError(path, "open", errNotRegular)
	}
	if info.Size() == 0 {
		return mapping{}, nil // An empty file cannot be mapped.
	}
	if info.Size() > math.MaxInt {
		return mapping{}, ioError(path, "map", errAddressSpace)
	}
	m, err := mapFile(file, int(info.Size()), residency)
	if err != nil {
		return mapping{}, ioError(path, "map", reason(err))
	}
	return m, nil
}

func openRegular(path string) (*os.File, error) {
	// Checked before opening, too: opening a named pipe would block until it has a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return os.Open(path)
}

var (
	errNotRegular   = errors.New("not a regular file")
	errAddressSpace = errors.New("the file is larger than the address space of this process")
)

// reason returns the error of the system without the path, which the error of this package has.
func reason(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
