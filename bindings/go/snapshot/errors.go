package snapshot

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the code of an error: a short name for programs, the same in all versions and languages.
// The file testdata/errors.csv of the repository lists the codes of files; CodeClosed is not among
// them.
type Code string

const (
	// CodeIO means that a system call failed, such as for a missing file, or that the path is not that
	// of a regular file.
	CodeIO Code = "io"
	// CodeNotASnapshot means that the file does not begin with the magic bytes of a snapshot.
	CodeNotASnapshot Code = "not-a-snapshot"
	// CodeUnsupported means that the file uses a feature of a newer version, or that the machine is
	// big-endian.
	CodeUnsupported Code = "unsupported"
	// CodeCorrupt means that the bytes of the file contradict the format.
	CodeCorrupt Code = "corrupt"
	// CodeWrongType means that the value has another type than the requested one.
	CodeWrongType Code = "wrong-type"
	// CodeUnreadable means that the file was truncated, or that the device failed to read it, while
	// it was mapped.
	CodeUnreadable Code = "unreadable"
	// CodeClosed means that the snapshot was closed, or the watch that it belongs to.
	CodeClosed Code = "closed"
)

// ErrClosed is the error of the lookups and other methods of a closed [Snapshot], except
// [Snapshot.Close], which can be called again. A watch returns a closed snapshot after
// [Watcher.Close].
var ErrClosed error = &Error{Code: CodeClosed}

// Error is the type of all errors of this package. A missing key is not an error.
type Error struct {
	// Code is the kind of the error.
	Code Code
	// Path is the path of the file, or "(memory)" for a snapshot of bytes.
	Path string
	// Offset is the offset in the file in bytes, for CodeNotASnapshot, CodeUnsupported and
	// CodeCorrupt.
	Offset uint64
	// Expected is what the format requires; for CodeWrongType, the requested type. For a checksum,
	// a length or a count it is the value in the file.
	Expected string
	// Found is what was found. For a checksum, a length or a count it is the computed value.
	Found string
	// Key is the key of a lookup that failed with CodeWrongType.
	Key string
	// Operation is the operation that failed with CodeIO, such as "open".
	Operation string
	// Err is the error of the system for CodeIO, and that of the runtime for CodeUnreadable.
	Err error
}

// Error returns the message: what happened, where, and, except for CodeIO, what to do.
func (e *Error) Error() string {
	switch e.Code {
	case CodeIO:
		return fmt.Sprintf("%s: %s: %v", e.Path, e.Operation, e.Err)
	case CodeNotASnapshot:
		return e.damage("not a snapshot", "correct the path: this is another kind of file")
	case CodeUnsupported:
		return e.damage("not supported", "update the reader, or build the file for this version")
	case CodeCorrupt:
		return e.damage("damaged file", "copy or build the file again, and check the disk")
	case CodeWrongType:
		return fmt.Sprintf("%s: wrong type of the value of the key %.80q: requested %s, found %s; "+
			"request the type that was found, or correct the writer of the value",
			e.Path, e.Key, e.Expected, e.Found)
	case CodeUnreadable:
		return e.Path + ": the file was truncated or could not be read while it was mapped; " +
			"open it again, and check the disk and which process writes to the file"
	case CodeClosed:
		return "the snapshot is closed; open the file again"
	}
	return string(e.Code)
}

func (e *Error) damage(what, action string) string {
	return fmt.Sprintf("%s: %s: at byte %d: expected %s, found %s; %s",
		what, e.Path, e.Offset, e.Expected, e.Found, action)
}

// Unwrap returns the error of the system or the runtime, or nil. For a missing file it is
// [syscall.ENOENT], so errors.Is(err, fs.ErrNotExist) is true.
func (e *Error) Unwrap() error {
	return e.Err
}

// ErrorCode returns the code.
func (e *Error) ErrorCode() Code {
	return e.Code
}

// CodeOf returns the code of an error of this package or of package writer, or "" for another error
// and for nil.
func CodeOf(err error) Code {
	var found interface {
		error
		ErrorCode() Code
	}
	if errors.As(err, &found) {
		return found.ErrorCode()
	}
	return ""
}

func ioError(path, operation string, err error) *Error {
	return &Error{Code: CodeIO, Path: path, Operation: operation, Err: err}
}

func corrupt(path string, offset uint64, expected, found string) *Error {
	return &Error{Code: CodeCorrupt, Path: path, Offset: offset, Expected: expected, Found: found}
}

func unsupported(path string, offset uint64, expected, found string) *Error {
	return &Error{
		Code: CodeUnsupported, Path: path, Offset: offset, Expected: expected, Found: found,
	}
}

// versionName returns the name of a version of the format.
func versionName(minor uint16) string {
	return fmt.Sprintf("%d.%d", versionMajor, minor)
}

// checksumError returns the error for a checksum at an offset that differs from the computed one.
func checksumError(path string, offset uint64, what string, stored, computed uint64) *Error {
	return corrupt(path, offset,
		fmt.Sprintf("the stored checksum %016x of %s", stored, what),
		fmt.Sprintf("%016x", computed))
}

// wrongType returns the error for a value of another type. It copies the key.
//
//go:noinline
func wrongType(path, key string, requested, found Type) *Error {
	return &Error{
		Code: CodeWrongType, Path: path, Key: strings.Clone(key),
		Expected: requested.String(), Found: found.String(),
	}
}
