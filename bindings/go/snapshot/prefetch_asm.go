//go:build amd64 || arm64

package snapshot

import "unsafe"

// prefetch prefetches the first n addresses into the first-level cache, except nil. An address that
// is not mapped has no effect.
//
//go:noescape
func prefetch(addresses *[groupLen]unsafe.Pointer, n int)
