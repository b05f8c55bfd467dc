package snapshot

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestHashes hashes the keys of hashes.json.
func TestHashes(t *testing.T) {
	var rows []struct {
		Name string `json:"name"`
		Key  any    `json:"key"`
		Seed string `json:"seed"`
		Hash string `json:"hash"`
	}
	readJSON(t, filepath.Join(vectors, "hashes.json"), &rows)
	for _, row := range rows {
		passed := t.Run(row.Name, func(t *testing.T) {
			seed, err := strconv.ParseUint(row.Seed, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			hasher := newKeyHasher(seed)
			found := hasher.hash(keyOf(t, row.Key))
			if fmt.Sprintf("%016x", found) != row.Hash {
				t.Errorf("expected %s, found %016x", row.Hash, found)
			}
		})
		if passed {
			passedCases = append(passedCases, row.Name)
		}
	}
}

// typedCase is a case of typed.json.
type typedCase struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Key    any    `json:"key"`
	As     string `json:"as"`
	Value  any    `json:"value"`
	Absent bool   `json:"absent"`
	Found  string `json:"found"`
}

// TestTypedLookups calls the typed lookups of typed.json, with each kind of options.
func TestTypedLookups(t *testing.T) {
	var rows []typedCase
	readJSON(t, filepath.Join(vectors, "typed.json"), &rows)
	for i := range rows {
		row := &rows[i]
		passed := t.Run(row.Name, func(t *testing.T) {
			for _, options := range [][]Option{
				nil, {WithFaultErrors()}, {WithResidency(HugePages)}, {WithResidency(Populated)},
			} {
				s := mustOpen(t, filepath.Join(vectors, row.File), options...)
				checkTypedCase(t, s, row)
				s.Close()
			}
		})
		if passed {
			passedCases = append(passedCases, row.Name)
		}
	}
}

func checkTypedCase(t *testing.T, s *Snapshot, row *typedCase) {
	t.Helper()
	key := keyOf(t, row.Key)
	lookup := map[string]func() (any, bool, error){
		"bytes":          lookupOf(s.GetBytes, key),
		"string":         lookupOf(s.GetString, key),
		"bool":           lookupOf(s.GetBool, key),
		"i64":            lookupOf(s.GetInt64, key),
		"f64":            lookupOf(s.GetFloat64, key),
		"list of i64":    lookupOf(s.GetInt64s, key),
		"list of f64":    lookupOf(s.GetFloat64s, key),
		"list of f32":    lookupOf(s.GetFloat32s, key),
		"list of string": lookupOf(s.GetStrings, key),
	}[row.As]
	found, ok, err := lookup()
	switch {
	case row.Found != "":
		damage, _ := err.(*Error)
		if damage == nil || damage.Code != CodeWrongType || damage.Found != row.Found ||
			damage.Expected != row.As {
			t.Errorf("expected that %s was found, found %v", row.Found, err)
		}
	case err != nil || ok == row.Absent:
		t.Errorf("exists: %v, error: %v", ok, err)
	case !row.Absent:
		if wanted := describeJSON(t, row.As, row.Value); describeAny(row.As, found) != wanted {
			t.Errorf("expected %s, found %s", wanted, describeAny(row.As, found))
		}
	}
}

// watchCase is a case of watch.json.
type watchCase struct {
	Name   string `json:"name"`
	Verify bool   `json:"verify"`
	Steps  []struct {
		Publish  string `json:"publish"`
		Remove   bool   `json:"remove"`
		Current  string `json:"current"`
		Entries  uint64 `json:"entries"`
		Switched uint64 `json:"switched"`
		Rejected uint64 `json:"rejected"`
		Error    bool   `json:"error"`
	} `json:"steps"`
}

// TestWatchCases runs the cases of watch.json.
func TestWatchCases(t *testing.T) {
	var cases []watchCase
	readJSON(t, filepath.Join(vectors, "watch.json"), &cases)
	for _, c := range cases {
		if t.Run(c.Name, func(t *testing.T) { checkWatchCase(t, &c) }) {
			passedCases = append(passedCases, c.Name)
		}
	}
}

func checkWatchCase(t *testing.T, c *watchCase) {
	path := filepath.Join(t.TempDir(), "watched.nut")
	copyShards(t, filepath.Dir(path))
	var w *Watcher
	for i, step := range c.Steps {
		if step.Publish != "" {
			publish(t, path, readFile(t, filepath.Join(vectors, step.Publish)))
		}
		if step.Remove {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if w == nil {
			var options []Option
			if c.Verify {
				options = append(options, WithVerify())
			}
			w = mustWatch(t, path, options...)
		} else {
			w.follower.poll(false)
		}
		status := w.Status()
		if status.Switched != step.Switched || status.Rejected != step.Rejected ||
			(status.Err != nil) != step.Error {
			t.Fatalf("step %d: status %+v", i, status)
		}
		if w.Current().Len() != step.Entries {
			t.Fatalf("step %d: %d entries", i, w.Current().Len())
		}
		if step.Current[:3] == "v1/" {
			checkEntries(t, w.Current(), readDocument(t, step.Current))
		}
	}
}

// TestLargeFile reads the sparse file of large.json, which is larger than 4 GiB.
func TestLargeFile(t *testing.T) {
	var large struct {
		document
		Name   string `json:"name"`
		Length int64  `json:"length"`
		Patch  []struct {
			At  int64  `json:"at"`
			Hex string `json:"hex"`
		} `json:"patch"`
	}
	readJSON(t, filepath.Join(vectors, "large.json"), &large)
	path := filepath.Join(t.TempDir(), "large.nut")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(large.Length); err != nil {
		t.Fatal(err)
	}
	for _, patch := range large.Patch {
		content, err := hex.DecodeString(patch.Hex)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(content, patch.At); err != nil {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, path)
	defer s.Close()
	checkEntries(t, s, &large.document)
	if !t.Failed() {
		passedCases = append(passedCases, large.Name)
	}
}
