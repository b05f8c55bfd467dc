package writer

import (
	"encoding/binary"
	"math"

	"github.com/nuthatch-kv/nuthatch/bindings/go/snapshot"
)

// rows has rows in the form of nuthatch_snapshot_writer_insert_rows: type, length of the key,
// length of the value, key and value, without padding. Numbers are little-endian.
type rows []byte

// add adds a row up to its value, which must have this length.
func (r rows) add(key string, t snapshot.Type, valueLen int) rows {
	r = binary.LittleEndian.AppendUint32(r, uint32(t))
	r = binary.LittleEndian.AppendUint32(r, uint32(len(key)))
	r = binary.LittleEndian.AppendUint64(r, uint64(valueLen))
	return append(r, key...)
}

func (r rows) addBytes(key string, t snapshot.Type, value []byte) rows {
	return append(r.add(key, t, len(value)), value...)
}

func (r rows) addString(key, value string) rows {
	return append(r.add(key, snapshot.TypeString, len(value)), value...)
}

func (r rows) addBool(key string, value bool) rows {
	r = r.add(key, snapshot.TypeBool, 1)
	if value {
		return append(r, 1)
	}
	return append(r, 0)
}

func (r rows) addInt64s(key string, t snapshot.Type, list ...int64) rows {
	r = r.add(key, t, 8*len(list))
	for _, number := range list {
		r = binary.LittleEndian.AppendUint64(r, uint64(number))
	}
	return r
}

func (r rows) addFloat64s(key string, t snapshot.Type, list ...float64) rows {
	r = r.add(key, t, 8*len(list))
	for _, number := range list {
		r = binary.LittleEndian.AppendUint64(r, math.Float64bits(number))
	}
	return r
}

func (r rows) addFloat32s(key string, list []float32) rows {
	r = r.add(key, snapshot.TypeFloat32s, 4*len(list))
	for _, number := range list {
		r = binary.LittleEndian.AppendUint32(r, math.Float32bits(number))
	}
	return r
}

// addStrings adds a list with at least one string, and less than 4 GiB of text.
func (r rows) addStrings(key string, list []string, textLen int) rows {
	r = r.add(key, snapshot.TypeStrings, 4+4*len(list)+textLen)
	r = binary.LittleEndian.AppendUint32(r, uint32(len(list)))
	end := 0
	for _, text := range list {
		end += len(text)
		r = binary.LittleEndian.AppendUint32(r, uint32(end))
	}
	for _, text := range list {
		r = append(r, text...)
	}
	return r
}
