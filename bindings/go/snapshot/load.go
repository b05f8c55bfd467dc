package snapshot

import (
	"encoding/binary"
	"unsafe"
)

// The functions of this file read little-endian integers at any alignment. The compiler turns each
// into one instruction on x86-64 and aarch64. Callers must check the bounds.

func load16(p unsafe.Pointer, offset uintptr) uint16 {
	return binary.LittleEndian.Uint16((*[2]byte)(unsafe.Add(p, offset))[:])
}

func load32(p unsafe.Pointer, offset uintptr) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(p, offset))[:])
}

func load64(p unsafe.Pointer, offset uintptr) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, offset))[:])
}

// stringOf returns the bytes as a string, without a copy.
func stringOf(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// bytesOf returns the bytes of a string, without a copy. They must not be written to.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// isLittleEndian returns whether this machine stores the low byte of a number first.
func isLittleEndian() bool {
	number := uint16(1)
	return *(*byte)(unsafe.Pointer(&number)) == 1
}
