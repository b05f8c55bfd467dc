package snapshot

import (
	"math"
	"runtime"
	"unsafe"
)

// Key returns the bytes as a key for lookups, without a copy. The bytes must not change during the
// lookup.
func Key(bytes []byte) string {
	return stringOf(bytes)
}

// Get returns the value of a key, of any type; the zero [Value] for a missing key.
//
// The error has [CodeCorrupt] if the lookup reads damaged bytes, [CodeUnreadable] if a page cannot
// be read and the option [WithFaultErrors] is set, or is [ErrClosed].
func (s *Snapshot) Get(key string) (Value, error) {
	if f := s.fastFile(key); f != nil {
		if value, ok := f.getFast(key); ok {
			return value, nil
		}
	}
	return s.getSlow(key)
}

// Contains returns whether the key exists. The errors are those of [Snapshot.Get].
func (s *Snapshot) Contains(key string) (bool, error) {
	found, err := s.TypeOf(key)
	return found != 0, err
}

// TypeOf returns the type of a key's value, or 0 for a missing key. It does not check the bytes of
// the value. The errors are those of [Snapshot.Get].
func (s *Snapshot) TypeOf(key string) (Type, error) {
	f, err := s.fileOf(key)
	if err != nil {
		return 0, err
	}
	if !f.faultErrors {
		_, found := f.find(key, anyType)
		runtime.KeepAlive(f)
		if found == absent {
			return 0, nil
		}
		if found > 0 && Type(found).isKnown() {
			return Type(found), nil
		}
	}
	return f.typeOfSlow(key)
}

// typeOfSlow returns the type of a key's value by the slow path, or 0 for a missing key.
func (f *file) typeOfSlow(key string) (found Type, err error) {
	err = f.protectLookup(func() error {
		record, _, err := f.findSlow(key)
		found = record.valueType
		return err
	})
	runtime.KeepAlive(f)
	return found, err
}

// GetString returns a string, and whether the key exists.
//
// The error has [CodeWrongType] for a value of another type, or is one of [Snapshot.Get].
func (s *Snapshot) GetString(key string) (string, bool, error) {
	if f := s.fastFile(key); f != nil {
		text, found := f.find(key, uint64(TypeString))
		if found == absent {
			return "", false, nil
		}
		if found > 0 && isText(text) {
			runtime.KeepAlive(f)
			return text, true, nil
		}
	}
	// Written out because strings are the most common values: getTyped would double the time.
	if f := s.file.Load(); f != nil && f.faultErrors {
		if value, ok, err := f.getProtected(key, TypeString); ok || err != nil {
			return value.data, value.Exists(), err
		}
	}
	return getTyped(s, key, TypeString, Value.AsString)
}

// GetBytes returns a value of type bytes, and whether the key exists. The bytes are a view of the
// file and must not be written to. The errors are those of [Snapshot.GetString].
func (s *Snapshot) GetBytes(key string) ([]byte, bool, error) {
	if f := s.fastFile(key); f != nil {
		content, found := f.find(key, uint64(TypeBytes))
		if found == absent {
			return nil, false, nil
		}
		if found > 0 {
			runtime.KeepAlive(f)
			return bytesOf(content), true, nil
		}
	}
	return getTyped(s, key, TypeBytes, Value.AsBytes)
}

// GetBool returns a boolean, and whether the key exists. The errors are those of
// [Snapshot.GetString].
func (s *Snapshot) GetBool(key string) (value, ok bool, err error) {
	if f := s.fastFile(key); f != nil {
		content, found := f.find(key, uint64(TypeBool))
		if found == absent {
			return false, false, nil
		}
		if found > 0 && len(content) == 1 && content[0] <= 1 {
			value = content[0] != 0
			runtime.KeepAlive(f)
			return value, true, nil
		}
	}
	return getTyped(s, key, TypeBool, Value.AsBool)
}

// GetInt64 returns an integer, and whether the key exists. The errors are those of
// [Snapshot.GetString].
func (s *Snapshot) GetInt64(key string) (int64, bool, error) {
	bits, found := s.findNumber(key, TypeInt64)
	if found != undecided {
		return int64(bits), found != absent, nil
	}
	return getTyped(s, key, TypeInt64, Value.AsInt64)
}

// GetFloat64 returns a float, and whether the key exists. The errors are those of
// [Snapshot.GetString].
func (s *Snapshot) GetFloat64(key string) (float64, bool, error) {
	bits, found := s.findNumber(key, TypeFloat64)
	if found != undecided {
		return math.Float64frombits(bits), found != absent, nil
	}
	return getTyped(s, key, TypeFloat64, Value.AsFloat64)
}

// findNumber returns a number of eight bytes by the fast path.
func (s *Snapshot) findNumber(key string, t Type) (uint64, outcome) {
	f := s.fastFile(key)
	if f == nil {
		return 0, undecided
	}
	content, found := f.find(key, uint64(t))
	if found == absent {
		return 0, absent
	}
	if found <= 0 || len(content) != 8 {
		return 0, undecided
	}
	bits := load64(unsafe.Pointer(unsafe.StringData(content)), 0)
	runtime.KeepAlive(f)
	return bits, found
}

// GetInt64s returns a list of integers, and whether the key exists. The list is a view of the file
// and must not be written to. An empty list can be read as a list of any type. The errors are those
// of [Snapshot.GetString].
func (s *Snapshot) GetInt64s(key string) ([]int64, bool, error) {
	return getList[int64](s, key, TypeInt64s)
}

// GetFloat64s returns a list of 64-bit floats, as [Snapshot.GetInt64s] returns one of integers.
func (s *Snapshot) GetFloat64s(key string) ([]float64, bool, error) {
	return getList[float64](s, key, TypeFloat64s)
}

// GetFloat32s returns a list of 32-bit floats, as [Snapshot.GetInt64s] returns one of integers.
func (s *Snapshot) GetFloat32s(key string) ([]float32, bool, error) {
	return getList[float32](s, key, TypeFloat32s)
}

// GetStrings returns a list of strings, and whether the key exists. The slice is new, and the text
// of the strings is a view of the file. An empty list can be read as a list of any type. The errors
// are those of [Snapshot.GetString].
func (s *Snapshot) GetStrings(key string) ([]string, bool, error) {
	return getTyped(s, key, TypeStrings, Value.AsStrings)
}

// getList returns a list of numbers.
func getList[T number](s *Snapshot, key string, t Type) ([]T, bool, error) {
	if f := s.fastFile(key); f != nil {
		content, found := f.find(key, uint64(t))
		if found == absent {
			return nil, false, nil
		}
		if found > 0 && isAligned(content, t) && invalidForm(t, content) == "" {
			runtime.KeepAlive(f)
			return elementsOf[T](content), true, nil
		}
	}
	return getTyped(s, key, t, func(v Value) ([]T, bool) { return listOf[T](v, t) })
}

// getTyped returns the value of a key as a type, by the slow path.
func getTyped[T any](s *Snapshot, key string, t Type, as func(Value) (T, bool)) (T, bool, error) {
	var none T
	f, err := s.fileOf(key)
	if err != nil {
		return none, false, err
	}
	if f.faultErrors {
		value, ok, err := f.getProtected(key, t)
		if err != nil {
			return none, false, err
		}
		if ok {
			typed, ok := as(value)
			return typed, ok, nil
		}
	}
	value, err := f.valueOfType(key, t)
	if err != nil || !value.Exists() {
		return none, false, err
	}
	typed, ok := as(value)
	if !ok {
		return none, false, wrongType(f.path, key, t, value.valueType)
	}
	return typed, true, nil
}

// valueOfType returns the value of a key by the slow path; the zero Value for a missing key. The
// value must have this type or be an empty list.
func (f *file) valueOfType(key string, t Type) (value Value, err error) {
	err = f.protectLookup(func() error {
		found, ok, err := f.findSlow(key)
		if err != nil || !ok {
			return err
		}
		if found.valueType != t && found.valueType != TypeEmptyList {
			return wrongType(f.path, key, t, found.valueType)
		}
		value, err = f.value(&found)
		return err
	})
	runtime.KeepAlive(f)
	return value, err
}
