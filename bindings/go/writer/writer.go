//go:build cgo

package writer

/*
#cgo CFLAGS: -I${SRCDIR}/../../c/include
#cgo LDFLAGS: -lnuthatch
#include <nuthatch.h>
#include <string.h>
*/
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"syscall"
	"unicode/utf8"
	"unsafe"

	"github.com/nuthatch-kv/nuthatch/bindings/go/snapshot"
)

const (
	// bufferLen is the number of bytes of rows that are collected for one call of C.
	bufferLen = 256 << 10
	maxKeyLen = 65_535
)

// Duplicates is how rows with the same key are handled.
type Duplicates uint32

const (
	// DuplicateError, the default, makes a second row with a key an error with the code duplicate,
	// which an insertion or Finish returns.
	DuplicateError Duplicates = C.NUTHATCH_SNAPSHOT_DUPLICATE_ERROR
	// DuplicateFirst keeps the row that was inserted first.
	DuplicateFirst Duplicates = C.NUTHATCH_SNAPSHOT_DUPLICATE_FIRST
	// DuplicateLast keeps the row that was inserted last.
	DuplicateLast Duplicates = C.NUTHATCH_SNAPSHOT_DUPLICATE_LAST
)

// Options has the options of a writer. The zero Options are the defaults.
type Options struct {
	// OnDuplicate is how rows with the same key are handled; DuplicateError by default.
	OnDuplicate Duplicates
	// Zstd compresses values with zstd, with a dictionary that is trained on them. A value that
	// would shrink by less than an eighth, or has more than 16 MiB, is not compressed.
	Zstd bool
	// ZstdLevel is the compression level from 1 to 22. Zero means 3.
	ZstdLevel uint32
	// Threads is the maximum number of threads. Zero means one for each processor.
	Threads uint32
	// MemoryBytes is the memory budget in bytes. Zero means 1 GiB; less than 16 MiB counts as 16
	// MiB. Rows beyond it are written to temporary files in the folder of the snapshot.
	MemoryBytes uint64
	// Seed is the seed of the key hash.
	Seed uint64
	// Shards is the number of shards of a set, at most 65,536. With zero, the snapshot is one file.
	Shards uint32
}

// Summary is the result of a build.
type Summary struct {
	// Entries is the number of entries.
	Entries uint64
	// Rows is the number of rows that were inserted, duplicates included.
	Rows uint64
	// FileBytes is the length of the file in bytes; for a set, of all shards without the
	// manifest.
	FileBytes uint64
	// KeyBytes, ValueBytes and StoredValueBytes are sums of lengths in bytes: of all keys, of all
	// values, and of all stored values, of which a shared one counts once.
	KeyBytes, ValueBytes, StoredValueBytes uint64
}

// Error is the error of a writer.
type Error struct {
	// Code is the code of the error: io, not-durable, duplicate, limit, closed, or argument for an
	// invalid option or text.
	Code snapshot.Code
	// Message is what happened, where, and what was expected.
	Message string
	// Position is, for the code duplicate, the number of the second row with the key, counted from 0.
	Position uint64
	// Errno is the error number of the system, or 0.
	Errno syscall.Errno
}

// Error returns the message.
func (e *Error) Error() string {
	return e.Message
}

// ErrorCode returns the code, for [snapshot.CodeOf].
func (e *Error) ErrorCode() snapshot.Code {
	return e.Code
}

// Unwrap returns the error of the system, or nil.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// Writer writes a snapshot. Rows can be inserted in any order. One goroutine at a time can use a
// Writer.
//
// An insertion returns an error with the code limit or argument for its own row. Rows are passed to
// the library in groups, so any other error of a row may be returned by a later call. After Finish
// and Abandon, all methods but Abandon return an error with the code closed.
type Writer struct {
	handle   C.nuthatch_snapshot_writer
	rows     rows
	cleanup  runtime.Cleanup
	isClosed bool
}

// Create starts a snapshot that [Writer.Finish] publishes at this path, in place of a file that is
// there. Until then, rows are in memory and in temporary files in the same folder.
//
// The error has the code io if the temporary file cannot be created, or argument for an option that
// is out of range.
func Create(path string, options Options) (*Writer, error) {
	o := C.nuthatch_snapshot_writer_options{
		on_duplicate:      C.uint32_t(options.OnDuplicate),
		compression_level: C.uint32_t(options.ZstdLevel),
		threads:           C.uint32_t(options.Threads),
		memory_bytes:      C.uint64_t(options.MemoryBytes),
		seed:              C.uint64_t(options.Seed),
		shards:            C.uint32_t(options.Shards),
	}
	if options.Zstd {
		o.compression = C.NUTHATCH_SNAPSHOT_COMPRESSION_ZSTD
	}
	w := &Writer{rows: make(rows, 0, bufferLen)}
	var e C.nuthatch_error
	if C.nuthatch_snapshot_writer_create(bytesOf(path), C.size_t(len(path)), &o, &w.handle,
		&e) != 0 {
		return nil, errorOf(&e)
	}
	w.cleanup = runtime.AddCleanup(w, abandon, w.handle)
	return w, nil
}

// abandon removes the temporary files of a writer that is unreachable.
func abandon(handle C.nuthatch_snapshot_writer) {
	C.nuthatch_snapshot_writer_abandon(handle, nil)
}

// InsertBytes inserts a row with bytes. It copies key and value. A key has at most 65,535 bytes.
func (w *Writer) InsertBytes(key string, value []byte) error {
	return w.insert(key, func(r rows) rows { return r.addBytes(key, snapshot.TypeBytes, value) })
}

// InsertString inserts a row with a string in UTF-8.
func (w *Writer) InsertString(key, value string) error {
	if !utf8.ValidString(value) {
		return notText(key)
	}
	return w.insert(key, func(r rows) rows { return r.addString(key, value) })
}

// InsertBool inserts a row with a boolean.
func (w *Writer) InsertBool(key string, value bool) error {
	return w.insert(key, func(r rows) rows { return r.addBool(key, value) })
}

// InsertInt64 inserts a row with an integer.
func (w *Writer) InsertInt64(key string, value int64) error {
	return w.insert(key, func(r rows) rows { return r.addInt64s(key, snapshot.TypeInt64, value) })
}

// InsertFloat64 inserts a row with a float. A NaN keeps its bits.
func (w *Writer) InsertFloat64(key string, value float64) error {
	return w.insert(key, func(r rows) rows {
		return r.addFloat64s(key, snapshot.TypeFloat64, value)
	})
}

// InsertInt64s inserts a row with a list of integers.
func (w *Writer) InsertInt64s(key string, list []int64) error {
	return w.insert(key, func(r rows) rows {
		return r.addInt64s(key, snapshot.TypeInt64s, list...)
	})
}

// InsertFloat64s inserts a row with a list of 64-bit floats.
func (w *Writer) InsertFloat64s(key string, list []float64) error {
	return w.insert(key, func(r rows) rows {
		return r.addFloat64s(key, snapshot.TypeFloat64s, list...)
	})
}

// InsertFloat32s inserts a row with a list of 32-bit floats.
func (w *Writer) InsertFloat32s(key string, list []float32) error {
	return w.insert(key, func(r rows) rows { return r.addFloat32s(key, list) })
}

// InsertStrings inserts a row with a list of strings in UTF-8, with less than 4 GiB of text.
func (w *Writer) InsertStrings(key string, list []string) error {
	textLen := 0
	for _, text := range list {
		if !utf8.ValidString(text) {
			return notText(key)
		}
		textLen += len(text)
	}
	if uint64(textLen) > math.MaxUint32 {
		return &Error{Code: "limit", Message: fmt.Sprintf(
			"bytes of text in a list of strings: at most %d, found %d", uint32(math.MaxUint32),
			textLen)}
	}
	return w.insert(key, func(r rows) rows {
		if len(list) == 0 {
			return r.add(key, snapshot.TypeEmptyList, 0)
		}
		return r.addStrings(key, list, textLen)
	})
}

// SetMetadata sets a value of the metadata: any bytes, under a name in UTF-8 of 1 to 255 bytes. It
// replaces an earlier value of the name. All metadata takes at most 1 MiB.
func (w *Writer) SetMetadata(name string, value []byte) error {
	if w.isClosed {
		return errClosed()
	}
	var e C.nuthatch_error
	text := snapshot.Key(value)
	failed := C.nuthatch_snapshot_writer_set_metadata(w.handle, bytesOf(name), C.size_t(len(name)),
		bytesOf(text), C.size_t(len(text)), &e) != 0
	runtime.KeepAlive(w)
	if failed {
		return errorOf(&e)
	}
	return nil
}

// insert adds a row to the buffer, and calls C when the buffer is full.
func (w *Writer) insert(key string, add func(rows) rows) error {
	if w.isClosed {
		return errClosed()
	}
	if len(key) > maxKeyLen {
		return &Error{Code: "limit", Message: fmt.Sprintf(
			"key length in bytes: at most %d, found %d", maxKeyLen, len(key))}
	}
	if w.rows = add(w.rows); len(w.rows) >= bufferLen {
		return w.flush()
	}
	return nil
}

// flush passes the buffered rows to C.
func (w *Writer) flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	var e C.nuthatch_error
	failed := C.nuthatch_snapshot_writer_insert_rows(w.handle,
		(*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(w.rows))), C.size_t(len(w.rows)), &e) != 0
	runtime.KeepAlive(w)
	if w.rows = w.rows[:0]; cap(w.rows) > 16*bufferLen {
		w.rows = make(rows, 0, bufferLen)
	}
	if failed {
		return errorOf(&e)
	}
	return nil
}

// Finish writes the file, syncs it and publishes it at its path. If it fails, the path is
// unchanged, with one exception: after the code not-durable the new file is published, but a power
// failure may restore the old one. The writer is closed in any case.
func (w *Writer) Finish() (Summary, error) {
	if w.isClosed {
		return Summary{}, errClosed()
	}
	if err := w.flush(); err != nil {
		w.Abandon()
		return Summary{}, err
	}
	w.isClosed = true
	w.cleanup.Stop()
	var s C.nuthatch_snapshot_summary
	var e C.nuthatch_error
	if C.nuthatch_snapshot_writer_finish(w.handle, &s, &e) != 0 {
		return Summary{}, errorOf(&e)
	}
	return Summary{
		Entries: uint64(s.entries), Rows: uint64(s.rows), FileBytes: uint64(s.file_bytes),
		KeyBytes: uint64(s.key_bytes), ValueBytes: uint64(s.value_bytes),
		StoredValueBytes: uint64(s.stored_value_bytes),
	}, nil
}

// Abandon removes the temporary files and closes the writer. The path is unchanged. It does nothing
// after Finish or Abandon, so it can be deferred.
func (w *Writer) Abandon() {
	if w.isClosed {
		return
	}
	w.isClosed = true
	w.cleanup.Stop()
	abandon(w.handle)
	runtime.KeepAlive(w)
}

func errClosed() error {
	return &Error{Code: snapshot.CodeClosed, Message: "the writer is closed; create another one"}
}

func notText(key string) error {
	return &Error{Code: "argument", Message: fmt.Sprintf(
		"the value of the key %.80q: expected UTF-8, found other bytes; use InsertBytes", key)}
}

// bytesOf returns the address of the bytes of a string, which C does not keep.
func bytesOf(s string) *C.uint8_t {
	return (*C.uint8_t)(unsafe.Pointer(unsafe.StringData(s)))
}

// errorOf returns the error that C has written.
func errorOf(e *C.nuthatch_error) error {
	message := (*C.char)(unsafe.Pointer(&e.message[0]))
	return &Error{
		Code:     snapshot.Code(C.GoString(C.nuthatch_code_name(e.code))),
		Message:  C.GoStringN(message, C.int(C.strnlen(message, C.size_t(len(e.message))))),
		Position: uint64(e.position),
		Errno:    syscall.Errno(e.system),
	}
}
