package snapshot

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// Value is a value of a snapshot, with its type. The zero Value stands for a missing key.
//
// A Value is a view of the file, unless the value is compressed. See [Snapshot] for how long it is
// valid; [Value.Clone] makes a copy.
type Value struct {
	data      string
	valueType Type
}

// Exists returns whether the key of the lookup exists.
func (v Value) Exists() bool {
	return v.valueType != 0
}

// Type returns the type of the value, or 0 for a missing key.
func (v Value) Type() Type {
	return v.valueType
}

// Clone returns a copy of the value, which is independent of the file and of its closing.
func (v Value) Clone() Value {
	if len(v.data) > 0 {
		v.data = stringOf(append(alignedBytes(len(v.data)), v.data...))
	}
	return v
}

// AsBytes returns a value of type bytes, and whether the value has this type. The bytes must not be
// written to.
func (v Value) AsBytes() ([]byte, bool) {
	if v.valueType != TypeBytes {
		return nil, false
	}
	return bytesOf(v.data), true
}

// AsString returns a string, and whether the value has this type.
func (v Value) AsString() (string, bool) {
	if v.valueType != TypeString {
		return "", false
	}
	return v.data, true
}

// AsBool returns a boolean, and whether the value has this type.
func (v Value) AsBool() (value, ok bool) {
	if v.valueType != TypeBool {
		return false, false
	}
	return v.data[0] != 0, true
}

// AsInt64 returns an integer, and whether the value has this type.
func (v Value) AsInt64() (int64, bool) {
	if v.valueType != TypeInt64 {
		return 0, false
	}
	return int64(v.bits()), true
}

// AsFloat64 returns a float, and whether the value has this type.
func (v Value) AsFloat64() (float64, bool) {
	if v.valueType != TypeFloat64 {
		return 0, false
	}
	return math.Float64frombits(v.bits()), true
}

// AsInt64s returns a list of integers, and whether the value has this type or is an empty list. The
// list must not be written to.
func (v Value) AsInt64s() ([]int64, bool) {
	return listOf[int64](v, TypeInt64s)
}

// AsFloat64s returns a list of 64-bit floats, and whether the value has this type or is an empty
// list. The list must not be written to.
func (v Value) AsFloat64s() ([]float64, bool) {
	return listOf[float64](v, TypeFloat64s)
}

// AsFloat32s returns a list of 32-bit floats, and whether the value has this type or is an empty
// list. The list must not be written to.
func (v Value) AsFloat32s() ([]float32, bool) {
	return listOf[float32](v, TypeFloat32s)
}

// AsStrings returns a list of strings, and whether the value has this type or is an empty list. The
// slice is new, and the text of the strings is a view of the file.
func (v Value) AsStrings() ([]string, bool) {
	switch v.valueType {
	case TypeStrings:
		return stringsOf(bytesOf(v.data)), true
	case TypeEmptyList:
		return []string{}, true
	}
	return nil, false
}

// Any returns the value as []byte, string, bool, int64, float64, []int64, []float64, []float32 or
// []string; as []any for an empty list; or nil for a missing key.
func (v Value) Any() any {
	var value any
	switch v.valueType {
	case TypeBytes:
		value, _ = v.AsBytes()
	case TypeString:
		value, _ = v.AsString()
	case TypeBool:
		value, _ = v.AsBool()
	case TypeInt64:
		value, _ = v.AsInt64()
	case TypeFloat64:
		value, _ = v.AsFloat64()
	case TypeInt64s:
		value, _ = v.AsInt64s()
	case TypeFloat64s:
		value, _ = v.AsFloat64s()
	case TypeFloat32s:
		value, _ = v.AsFloat32s()
	case TypeStrings:
		value, _ = v.AsStrings()
	case TypeEmptyList:
		value = []any{}
	}
	return value
}

// String returns the value as text for people, such as in logs: what [fmt.Sprint] returns for
// [Value.Any], so "<nil>" for a missing key.
func (v Value) String() string {
	return fmt.Sprint(v.Any())
}

// bits returns the eight bytes of a number.
func (v Value) bits() uint64 {
	return load64(unsafe.Pointer(unsafe.StringData(v.data)), 0)
}

// number is an element type of the lists that are read in place.
type number interface {
	int64 | float64 | float32
}

// listOf returns the elements of a list with this type, or of an empty list.
func listOf[T number](v Value, t Type) ([]T, bool) {
	switch v.valueType {
	case t:
		return elementsOf[T](v.data), true
	case TypeEmptyList:
		return []T{}, true
	}
	return nil, false
}

// elementsOf returns the bytes as numbers, without a copy. The bytes must be aligned.
func elementsOf[T number](data string) []T {
	first := unsafe.Pointer(unsafe.StringData(data))
	return unsafe.Slice((*T)(first), len(data)/int(unsafe.Sizeof(T(0))))
}

// alignedBytes returns an empty slice with room for n bytes that begin at a multiple of 8.
func alignedBytes(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))[:0]
}

// CloneStrings returns a copy of the strings and their text, which is independent of the file.
func CloneStrings(list []string) []string {
	copied := slices.Clone(list)
	for i, text := range copied {
		copied[i] = strings.Clone(text)
	}
	return copied
}
