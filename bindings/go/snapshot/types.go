package snapshot

import "strconv"

// Type is the type of a value. The zero Type is that of no value.
type Type uint8

const (
	TypeBytes    Type = 1
	TypeString   Type = 2
	TypeBool     Type = 3
	TypeInt64    Type = 4
	TypeFloat64  Type = 5
	TypeInt64s   Type = 6
	TypeFloat64s Type = 7
	TypeFloat32s Type = 8
	TypeStrings  Type = 9
	// TypeEmptyList is the type of a list without elements. It can be read as a list of any type.
	TypeEmptyList Type = 10

	lastType = TypeEmptyList
)

var typeNames = [...]string{
	"none", "bytes", "string", "bool", "i64", "f64", "list of i64", "list of f64", "list of f32",
	"list of string", "empty list",
}

// typeAlignments has the alignment of the stored values of each type.
var typeAlignments = [16]uint8{1, 1, 1, 1, 8, 8, 8, 8, 4, 4, 1, 1, 1, 1, 1, 1}

// String returns the name of the type, which is the same in all languages, such as "list of i64".
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// isKnown returns whether the format has this type.
func (t Type) isKnown() bool {
	return t >= TypeBytes && t <= lastType
}
