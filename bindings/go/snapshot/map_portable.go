//go:build !unix || aix || solaris

package snapshot

import (
	"io"
	"os"
)

// mapFile returns the bytes of an open file of this length, above 0. It reads the whole file into
// memory, because this system has no mmap.
func mapFile(file *os.File, length int, _ Residency) (mapping, error) {
	bytes := alignedBytes(length)[:length]
	_, err := io.ReadFull(file, bytes)
	return mapping{bytes: bytes}, err
}

// unmap does nothing: the garbage collector frees the memory.
func unmap(mapping) {}
