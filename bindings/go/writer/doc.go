// Package writer writes Nuthatch snapshots through the C library, libnuthatch. It requires cgo; the
// README of the module says how to build the library. To read snapshots, use package snapshot,
// which does not require it. Errors are of type [*Error].
//
//	w, err := writer.Create("users.nut", writer.Options{})
//	...
//	defer w.Abandon() // does nothing after Finish
//	err = w.InsertString("user:1.name", "Ada")
//	...
//	summary, err := w.Finish()
package writer
