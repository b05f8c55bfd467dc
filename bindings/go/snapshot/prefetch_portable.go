//go:build !amd64 && !arm64

package snapshot

import "unsafe"

// prefetch does nothing: on these machines, the processor overlaps the loads of a group by itself.
func prefetch(*[groupLen]unsafe.Pointer, int) {}
