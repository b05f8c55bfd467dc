// Package snapshot reads Nuthatch snapshots: immutable files that map keys to typed values.
//
// A snapshot is mapped into memory and read in place: lookups take no lock, copy no value, allocate
// nothing and make no system call. There are two exceptions: a compressed value is decompressed
// into new memory, and a list of strings needs a new slice. All processes of a machine share the
// pages of a mapped file. The format is docs/formats/snapshot.md of the repository.
//
//	users, err := snapshot.Open("users.nut")
//	...
//	defer users.Close()
//	name, ok, err := users.GetString("user:1.name")
//
// [Watch] serves the newest file at a path, while files are renamed over it.
//
// Errors are of type [*Error] and have a [Code]. A missing key is not an error.
package snapshot
