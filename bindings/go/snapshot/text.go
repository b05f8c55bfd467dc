package snapshot

import (
	"unicode/utf8"
	"unsafe"
)

const highBits = 0x8080808080808080

// isText returns whether the bytes are UTF-8. It checks 8 to 16 bytes of ASCII with two loads.
func isText(s string) bool {
	p, n := unsafe.Pointer(unsafe.StringData(s)), uintptr(len(s))
	if n-8 <= 8 && (load64(p, 0)|load64(p, n-8))&highBits == 0 {
		return true
	}
	return isOtherText(s)
}

//go:noinline
func isOtherText(s string) bool {
	return utf8.ValidString(s)
}
