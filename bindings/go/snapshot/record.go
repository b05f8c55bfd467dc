package snapshot

import (
	"encoding/binary"
	"strconv"
)

// record is a decoded record. Offsets count from the start of the data section; all parts are
// within the section.
type record struct {
	key          string
	valueType    Type
	isCompressed bool
	isShared     bool
	stored       string // the stored bytes of the value: a zstd frame if it is compressed
	begin        uint64
	keyEnd       uint64
	storedAt     uint64
	end          uint64
}

// record decodes the record at an offset of the data section.
func (f *file) record(at uint64) (record, error) {
	data := f.dataBytes
	if at > uint64(len(data)) || uint64(len(data))-at < shortHeadLen {
		return record{}, f.corruptRecord(at, "a record within the data section", at)
	}
	rest := data[at:]
	tag, keyLen, valueLen := rest[0], uint64(rest[1]), uint64(rest[2])
	headLen := uint64(shortHeadLen)
	if tag&tagLong != 0 {
		if len(rest) < longHeadLen {
			return record{}, f.corruptRecord(at, "a long head within the data section", at)
		}
		headLen, keyLen = longHeadLen, uint64(binary.LittleEndian.Uint16(rest[1:]))
		valueLen = uint64(binary.LittleEndian.Uint32(rest[3:])) | uint64(rest[7])<<32
		if valueLen > maxValueLen {
			return record{}, f.corruptRecord(at+3, "a value of at most 4 GiB", valueLen)
		}
	}
	r := record{
		valueType: Type(tag & tagTypeMask), isCompressed: tag&tagCompressed != 0,
		isShared: tag&tagShared != 0, begin: at,
	}
	if !r.valueType.isKnown() || tag&tagReserved != 0 {
		return record{}, f.corruptRecord(at, "a tag with a known type and bit 7 zero", uint64(tag))
	}
	if uint64(len(rest)) < headLen+keyLen {
		return record{}, f.corruptRecord(at, "a key within the data section", keyLen)
	}
	r.key = stringOf(rest[headLen : headLen+keyLen])
	r.keyEnd = at + headLen + keyLen
	return f.withValue(r, tag, valueLen)
}

// withValue finds the value of a record whose head and key are decoded.
func (f *file) withValue(r record, tag byte, valueLen uint64) (record, error) {
	data := f.dataBytes
	alignment := uint64(typeAlignments[r.valueType])
	if r.isCompressed {
		alignment = 1
	}
	r.storedAt = r.keyEnd
	invalid := r.begin
	switch {
	case r.isShared:
		if uint64(len(data))-r.keyEnd < referenceLen {
			return record{}, f.corruptRecord(r.keyEnd, "a reference within the data section",
				r.keyEnd)
		}
		reference := data[r.keyEnd : r.keyEnd+referenceLen]
		r.storedAt = uint64(binary.LittleEndian.Uint32(reference)) |
			uint64(binary.LittleEndian.Uint16(reference[4:]))<<32
		invalid = r.keyEnd
	case tag&tagLong != 0:
		r.storedAt = alignUp(r.keyEnd, alignment)
	}
	if r.storedAt%alignment != 0 {
		return record{}, f.corruptRecord(r.begin, "a value at a multiple of "+
			strconv.FormatUint(alignment, 10), r.storedAt)
	}
	if r.storedAt > uint64(len(data)) || uint64(len(data))-r.storedAt < valueLen {
		return record{}, f.corruptRecord(invalid, "a value within the data section", valueLen)
	}
	r.stored = stringOf(data[r.storedAt : r.storedAt+valueLen])
	r.end = r.storedAt + valueLen
	if r.isShared {
		r.end = r.keyEnd + referenceLen
	}
	return r, nil
}

// corruptRecord returns the error for damage at an offset of the data section.
func (f *file) corruptRecord(at uint64, expected string, found uint64) error {
	return corrupt(f.path, f.header.data.offset+at, expected, strconv.FormatUint(found, 10))
}

// value returns the value of a record. It decompresses the value and checks its form.
func (f *file) value(r *record) (Value, error) {
	content := r.stored
	if r.isCompressed {
		var err error
		if content, err = f.decompress(r); err != nil {
			return Value{}, err
		}
	}
	if expected := invalidForm(r.valueType, content); expected != "" {
		return Value{}, corrupt(f.path, f.header.data.offset+r.storedAt, expected,
			"other bytes, "+strconv.Itoa(len(content))+" in all")
	}
	return Value{data: content, valueType: r.valueType}, nil
}
