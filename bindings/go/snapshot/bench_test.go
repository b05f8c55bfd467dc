package snapshot

import (
	"path/filepath"
	"testing"
)

// BenchmarkLookup measures lookups in a file that is in the first-level cache.
func BenchmarkLookup(b *testing.B) {
	path := filepath.Join(vectors, "v1", "entries-200.nut")
	for _, c := range []struct {
		name    string
		options []Option
	}{{"plain", nil}, {"WithFaultErrors", []Option{WithFaultErrors()}}} {
		s := mustOpen(b, path, c.options...)
		defer s.Close()
		b.Run("Get/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Get("00100"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
