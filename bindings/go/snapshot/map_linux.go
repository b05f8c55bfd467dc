package snapshot

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile returns the bytes of an open file of this length, above 0.
func mapFile(file *os.File, length int, residency Residency) (mapping, error) {
	flags := unix.MAP_SHARED
	switch residency {
	case HugePages:
		return copyFile(file, length)
	case Populated:
		flags |= unix.MAP_POPULATE
	}
	bytes, err := unix.Mmap(int(file.Fd()), 0, length, unix.PROT_READ, flags)
	return mapping{bytes: bytes, isMapped: true}, err
}

// copyFile reads a file into anonymous memory, on huge pages if the system provides them.
func copyFile(file *os.File, length int) (mapping, error) {
	bytes, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return mapping{}, err
	}
	m := mapping{bytes: bytes, isMapped: true}
	// Only advice: without huge pages, lookups are slower.
	_ = unix.Madvise(bytes, unix.MADV_HUGEPAGE)
	if _, err = io.ReadFull(file, bytes); err == nil {
		err = unix.Mprotect(bytes, unix.PROT_READ)
	}
	if err != nil {
		unmap(m)
	}
	return m, err
}

// unmap releases a mapping. Its bytes must not be used afterwards.
func unmap(m mapping) {
	if m.isMapped {
		// It fails only for memory that is not mapped.
		_ = unix.Munmap(m.bytes)
	}
}
