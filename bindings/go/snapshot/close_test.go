package snapshot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// copyVector copies a good file to a folder of the test and returns its path.
func copyVector(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.nut")
	writeFile(t, path, readFile(t, filepath.Join(vectors, "v1", name)))
	copyShards(t, filepath.Dir(path))
	return path
}

func mustOpen(t testing.TB, path string, options ...Option) *Snapshot {
	t.Helper()
	s, err := Open(path, options...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// allOf returns copies of all entries.
func allOf(t testing.TB, s *Snapshot) []Entry {
	t.Helper()
	var entries []Entry
	for entry, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry.Clone())
	}
	return entries
}

func TestAllMethodsOfAClosedSnapshotReturnErrClosed(t *testing.T) {
	for _, name := range []string{"types.nut", "set-3.nut"} {
		s := mustOpen(t, filepath.Join(vectors, "v1", name))
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		_, get := s.Get("string")
		_, _, text := s.GetString("string")
		_, _, number := s.GetInt64("string")
		_, _, list := s.GetFloat32s("string")
		_, contains := s.Contains("string")
		_, stats := s.Stats()
		_, metadata := s.Metadata()
		many := s.GetMany([]string{"string"}, make([]Value, 1))
		for i, err := range []error{
			get, text, number, list, contains, stats, metadata, many, firstError(s), s.Verify(),
		} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s: call %d returned %v", name, i, err)
			}
		}
		if s.Len() != 0 {
			t.Errorf("%d entries", s.Len())
		}
	}
}

// TestCloseUnderReaders closes a snapshot while goroutines read it in all ways.
func TestCloseUnderReaders(t *testing.T) {
	for _, name := range []string{"entries-20000.nut", "zstd-dictionary.nut", "set-7.nut"} {
		path := copyVector(t, name)
		for range 10 {
			closeUnderReaders(t, path)
		}
		if runtime.GOOS == "linux" {
			waitUntilUnmapped(t, filepath.Dir(path))
		}
	}
}

func closeUnderReaders(t *testing.T, path string) {
	s := mustOpen(t, path)
	entries := allOf(t, s)
	keys := make([]string, len(entries))
	for i, entry := range entries {
		keys[i] = entry.Key
	}
	var started, ended sync.WaitGroup
	for reader := range 4 {
		started.Add(1)
		ended.Go(func() {
			start := sync.OnceFunc(started.Done)
			values := make([]Value, len(keys))
			for i := reader; ; i += 7 {
				err := readOnce(s, reader, keys[i%len(keys):], values)
				start()
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	started.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	runtime.GC()
	ended.Wait()
}

// readOnce reads in the way of a reader.
func readOnce(s *Snapshot, reader int, keys []string, values []Value) error {
	switch reader {
	case 0:
		_, err := s.Get(keys[0])
		return err
	case 1:
		_, _, err := s.GetString(keys[0])
		if CodeOf(err) == CodeWrongType {
			return nil
		}
		return err
	case 2:
		return s.GetMany(keys, values)
	}
	return firstError(s)
}

// waitUntilUnmapped collects garbage until the process maps no file of a folder.
func waitUntilUnmapped(t testing.TB, folder string) {
	t.Helper()
	for range 10_000 {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(maps, []byte(folder)) {
			return
		}
		runtime.GC()
	}
	t.Fatalf("files of %s are still mapped", folder)
}

func TestAClosedSnapshotIsUnmappedWhileItIsReachable(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("requires /proc/self/maps")
		return
	}
	for _, name := range []string{"types.nut", "set-3.nut"} {
		path := copyVector(t, name)
		s := mustOpen(t, path)
		s.Close()
		waitUntilUnmapped(t, filepath.Dir(path))
		runtime.KeepAlive(s)
	}
}

func TestValuesOfASnapshotThatIsNeverClosedStayValid(t *testing.T) {
	path := copyVector(t, "types.nut")
	view := func() string {
		text, ok, err := mustOpen(t, path).GetString("string")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return text
	}()
	for range 10 {
		runtime.GC()
	}
	expected := mustOpen(t, path)
	defer expected.Close()
	if text, _, err := expected.GetString("string"); err != nil || text != view {
		t.Errorf("expected %q, found %q: %v", text, view, err)
	}
}

func TestClonesStayValidAfterClose(t *testing.T) {
	path := copyVector(t, "types.nut")
	s := mustOpen(t, path)
	entries := allOf(t, s)
	list, _, err := s.GetStrings("list of string")
	if err != nil {
		t.Fatal(err)
	}
	list = CloneStrings(list)
	s.Close()
	if runtime.GOOS == "linux" {
		waitUntilUnmapped(t, filepath.Dir(path))
	}
	s = mustOpen(t, path)
	defer s.Close()
	for i, entry := range allOf(t, s) {
		if entry.Key != entries[i].Key || describe(entry.Value) != describe(entries[i].Value) {
			t.Errorf("entry %d: expected %v, found %v", i, entry, entries[i])
		}
	}
	again, _, err := s.GetStrings("list of string")
	if err != nil || !slices.Equal(again, list) {
		t.Errorf("expected %q, found %q", again, list)
	}
}

func TestLookupsAllocateNothing(t *testing.T) {
	s := mustOpen(t, filepath.Join(vectors, "v1", "entries-20000.nut"))
	defer s.Close()
	protected := mustOpen(t, s.Path(), WithFaultErrors())
	defer protected.Close()
	entries := allOf(t, s)[:100]
	keys, values := make([]string, len(entries)), make([]Value, len(entries))
	for i, entry := range entries {
		keys[i] = entry.Key
	}
	key := []byte(keys[0] + " and a suffix of more than 32 bytes")
	for name, lookup := range map[string]func() error{
		"Get":       func() error { _, err := s.Get(keys[0]); return err },
		"GetBool":   func() error { _, _, err := s.GetBool(keys[0]); return err },
		"GetString": func() error { _, _, err := s.GetString("absent"); return err },
		"Contains":  func() error { _, err := s.Contains(keys[1]); return err },
		"Key":       func() error { _, err := s.Get(Key(key)); return err },
		"GetMany":   func() error { return s.GetMany(keys, values) },
		"protected": func() error { _, err := protected.Get(keys[0]); return err },
		"typed":     func() error { _, _, err := protected.GetBool(keys[0]); return err },
	} {
		found := testing.AllocsPerRun(100, func() {
			if err := lookup(); err != nil {
				t.Fatal(err)
			}
		})
		if found != 0 {
			t.Errorf("%s: %v allocations", name, found)
		}
	}
}
