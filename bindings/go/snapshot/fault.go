package snapshot

import "runtime/debug"

// A page of a mapped file that cannot be read, because the file was truncated or the device failed,
// is a fault (SIGBUS). The runtime ends the process then, unless the goroutine has set
// debug.SetPanicOnFault: it panics instead. protect turns that panic into an error.

// protect calls a function that reads the files. It returns an error with CodeUnreadable if a page
// of one of them cannot be read.
func protect(call func() error, files ...*file) (err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err, files)
	return call()
}

// recoverFault ends the protection of a goroutine that had it set to previous, and stores the error
// for a fault in one of the files. It must be deferred. Any other panic continues.
func recoverFault(previous bool, err *error, files []*file) {
	debug.SetPanicOnFault(previous)
	panicked := recover()
	if panicked == nil {
		return
	}
	if fault, ok := panicked.(interface {
		error
		Addr() uintptr
	}); ok {
		for _, f := range files {
			if f.mapping.contains(fault.Addr()) {
				*err = &Error{Code: CodeUnreadable, Path: f.path, Err: fault}
				return
			}
		}
	}
	panic(panicked)
}
