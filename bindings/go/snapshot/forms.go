package snapshot

import (
	"encoding/binary"
	"unicode/utf8"
)

// invalidForm checks the form of a decompressed value of a known type. It returns what the format
// requires if the bytes are not such a value, and otherwise "".
func invalidForm(t Type, content string) string {
	n := len(content)
	switch t {
	case TypeString:
		if !utf8.ValidString(content) {
			return "a string in UTF-8"
		}
	case TypeBool:
		if n != 1 || content[0] > 1 {
			return "a bool, one byte that is 0 or 1"
		}
	case TypeInt64, TypeFloat64:
		if n != 8 {
			return "a number of 8 bytes"
		}
	case TypeInt64s, TypeFloat64s:
		if n == 0 || n%8 != 0 {
			return "a list of numbers of 8 bytes"
		}
	case TypeFloat32s:
		if n == 0 || n%4 != 0 {
			return "a list of numbers of 4 bytes"
		}
	case TypeStrings:
		if !isStringList(bytesOf(content)) {
			return "a list of strings"
		}
	case TypeEmptyList:
		if n != 0 {
			return "an empty list without bytes"
		}
	}
	return ""
}

// isStringList returns whether the bytes are a list of strings: a count above 0, the offset of the
// end of each string in ascending order, and the text, in which each string is UTF-8 by itself.
func isStringList(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	if count == 0 || count > uint64(len(b)-4)/4 {
		return false
	}
	ends, text := b[4:4+4*count], b[4+4*count:]
	if !utf8.Valid(text) {
		return false
	}
	last := uint64(0)
	for ; len(ends) > 0; ends = ends[4:] {
		end := uint64(binary.LittleEndian.Uint32(ends))
		if end < last || end > uint64(len(text)) {
			return false
		}
		if end < uint64(len(text)) && !utf8.RuneStart(text[end]) {
			return false
		}
		last = end
	}
	return last == uint64(len(text))
}

// stringsOf returns the strings of a list that isStringList accepted. It stays within the bytes
// even if another process changes them meanwhile.
func stringsOf(b []byte) []string {
	if len(b) < 4 {
		return nil
	}
	count := min(uint64(binary.LittleEndian.Uint32(b)), uint64(len(b)-4)/4)
	ends, text := b[4:4+4*count], stringOf(b[4+4*count:])
	list := make([]string, count)
	begin := uint64(0)
	for i := range list {
		end := min(uint64(binary.LittleEndian.Uint32(ends[4*i:])), uint64(len(text)))
		end = max(begin, end)
		list[i] = text[begin:end]
		begin = end
	}
	return list
}
