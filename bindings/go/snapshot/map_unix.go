//go:build unix && !linux && !aix && !solaris

package snapshot

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile returns the bytes of an open file of this length, above 0.
func mapFile(file *os.File, length int, residency Residency) (mapping, error) {
	if residency == HugePages {
		bytes := alignedBytes(length)[:length]
		_, err := io.ReadFull(file, bytes)
		return mapping{bytes: bytes}, err
	}
	bytes, err := unix.Mmap(int(file.Fd()), 0, length, unix.PROT_READ, unix.MAP_SHARED)
	if err == nil && residency == Populated {
		// Only advice: without it, the first lookups wait for the disk.
		_ = unix.Madvise(bytes, unix.MADV_WILLNEED)
	}
	return mapping{bytes: bytes, isMapped: true}, err
}

// unmap releases a mapping. Its bytes must not be used afterwards.
func unmap(m mapping) {
	if m.isMapped {
		// It fails only for memory that is not mapped.
		_ = unix.Munmap(m.bytes)
	}
}
