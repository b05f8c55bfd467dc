//go:build cgo

package writer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nuthatch-kv/nuthatch/bindings/go/snapshot"
)

const vectors = "../../../testdata/snapshot/v1"

// insert inserts an entry by the method for its type.
func insert(w *Writer, entry snapshot.Entry) error {
	switch v := entry.Value.Any().(type) {
	case []byte:
		return w.InsertBytes(entry.Key, v)
	case string:
		return w.InsertString(entry.Key, v)
	case bool:
		return w.InsertBool(entry.Key, v)
	case int64:
		return w.InsertInt64(entry.Key, v)
	case float64:
		return w.InsertFloat64(entry.Key, v)
	case []int64:
		return w.InsertInt64s(entry.Key, v)
	case []float64:
		return w.InsertFloat64s(entry.Key, v)
	case []float32:
		return w.InsertFloat32s(entry.Key, v)
	case []string:
		return w.InsertStrings(entry.Key, v)
	}
	// An empty list is one of any type.
	return w.InsertInt64s(entry.Key, nil)
}

// TestWrittenFilesHaveTheBytesOfTheVectors writes the entries of good files, and expects the same
// bytes.
func TestWrittenFilesHaveTheBytesOfTheVectors(t *testing.T) {
	for _, name := range []string{
		"empty", "one", "types", "keys", "long-values", "shared", "entries-200", "entries-20000",
		"seed", "metadata", "set-3",
	} {
		t.Run(name, func(t *testing.T) {
			source := filepath.Join(vectors, name+".nut")
			s, err := snapshot.Open(source)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			stats, err := s.Stats()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "written.nut")
			w, err := Create(path, Options{Seed: stats.Seed, Shards: uint32(stats.Shards)})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Abandon()
			copyAll(t, w, s)
			summary, err := w.Finish()
			if err != nil || summary.Entries != stats.Entries || summary.Rows != stats.Entries {
				t.Fatalf("summary %+v: %v", summary, err)
			}
			expected, found := readFile(t, source), readFile(t, path)
			if !bytes.Equal(expected, found) {
				t.Errorf("%d other bytes than the %d of the file", len(found), len(expected))
			}
		})
	}
}

func copyAll(t *testing.T, w *Writer, s *snapshot.Snapshot) {
	t.Helper()
	metadata, err := s.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range metadata {
		if err := w.SetMetadata(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for entry, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		if err := insert(w, entry); err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func create(t *testing.T, options Options) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "written.nut")
	w, err := Create(path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Abandon)
	return w, path
}

func TestManyRowsAreWrittenWithZstd(t *testing.T) {
	w, path := create(t, Options{Zstd: true})
	value := strings.Repeat("a value that compresses well. ", 10)
	for number := range 20_000 {
		suffix := strconv.Itoa(number)
		if err := w.InsertString("key "+suffix, value+suffix); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if text, _, err := s.GetString("key 7"); err != nil || text != value+"7" {
		t.Errorf("%q: %v", text, err)
	}
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}

func TestDuplicatesAreErrorsOrResolved(t *testing.T) {
	for _, c := range []struct {
		choice   Duplicates
		code     snapshot.Code
		expected int64
	}{
		{DuplicateError, "duplicate", 0}, {DuplicateFirst, "", 1}, {DuplicateLast, "", 2},
	} {
		w, path := create(t, Options{OnDuplicate: c.choice})
		for number := range int64(2) {
			if err := w.InsertInt64("key", number+1); err != nil {
				t.Fatal(err)
			}
		}
		_, err := w.Finish()
		if snapshot.CodeOf(err) != c.code {
			t.Errorf("expected the code %q, found %v", c.code, err)
		}
		if err != nil {
			continue
		}
		s, err := snapshot.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if number, _, err := s.GetInt64("key"); err != nil || number != c.expected {
			t.Errorf("expected %d, found %d: %v", c.expected, number, err)
		}
		s.Close()
	}
}

func TestInvalidInputIsAnError(t *testing.T) {
	w, path := create(t, Options{})
	for i, err := range []error{
		w.InsertBool(strings.Repeat("k", maxKeyLen+1), true),
		w.InsertString("key", "\xff"),
		w.InsertStrings("key", []string{"\xff"}),
		w.SetMetadata("", nil),
	} {
		if code := snapshot.CodeOf(err); code != "limit" && code != "argument" {
			t.Errorf("call %d returned %v", i, err)
		}
	}
	_, err := Create(filepath.Join(filepath.Dir(path), "missing", "a.nut"), Options{})
	if snapshot.CodeOf(err) != snapshot.CodeIO || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestAllMethodsOfAClosedWriterReturnClosed(t *testing.T) {
	for name, end := range map[string]func(*Writer) error{
		"Finish":  func(w *Writer) error { _, err := w.Finish(); return err },
		"Abandon": func(w *Writer) error { w.Abandon(); return nil },
	} {
		w, _ := create(t, Options{})
		if err := end(w); err != nil {
			t.Fatal(err)
		}
		_, finished := w.Finish()
		for i, err := range []error{
			w.InsertInt64("key", 1), w.InsertStrings("key", nil), w.SetMetadata("name", nil), finished,
		} {
			if snapshot.CodeOf(err) != snapshot.CodeClosed {
				t.Errorf("after %s, call %d returned %v", name, i, err)
			}
		}
	}
}

func TestAnAbandonedWriterLeavesNoFiles(t *testing.T) {
	w, path := create(t, Options{})
	if err := w.InsertBool("key", true); err != nil {
		t.Fatal(err)
	}
	w.Abandon()
	w.Abandon()
	if _, err := w.Finish(); snapshot.CodeOf(err) != snapshot.CodeClosed {
		t.Error(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 0 {
		t.Errorf("%v: %v", files, err)
	}
}
