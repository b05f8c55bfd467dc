package snapshot

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestGoodFiles reads every good file, and expects the contents of its JSON document.
func TestGoodFiles(t *testing.T) {
	for _, name := range goodFiles(t) {
		passed := t.Run(name, func(t *testing.T) {
			s, err := Open(filepath.Join(vectors, name))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			expected := readDocument(t, name)
			checkStats(t, s, expected)
			checkMetadata(t, s, expected)
			if err := s.Verify(); err != nil {
				t.Error(err)
			}
			checkEntries(t, s, expected)
		})
		if passed {
			passedCases = append(passedCases, name)
		}
	}
}

func checkStats(t *testing.T, s *Snapshot, expected *document) {
	t.Helper()
	stats, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(stats)
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]json.RawMessage
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	for name, value := range expected.Stats {
		wanted, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if string(found[name]) != string(wanted) {
			t.Errorf("%s: expected %s, found %s", name, wanted, found[name])
		}
	}
	if stats.Shards != expected.Shards || s.Len() != stats.Entries {
		t.Errorf("shards and entries: %d, %d", stats.Shards, s.Len())
	}
}

func checkMetadata(t *testing.T, s *Snapshot, expected *document) {
	t.Helper()
	metadata, err := s.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for name, value := range metadata {
		found[name] = jsonOfBytes(value)
	}
	if len(found)+len(expected.Metadata) > 0 && !reflect.DeepEqual(found, expected.Metadata) {
		t.Errorf("metadata: expected %v, found %v", expected.Metadata, found)
	}
}

// checkEntries expects the entries of a document from iteration and from all lookups, and no absent
// key.
func checkEntries(t *testing.T, s *Snapshot, expected *document) {
	t.Helper()
	var keys, wanted []string
	for _, entry := range expected.Entries {
		keys = append(keys, keyOf(t, entry.Key))
		wanted = append(wanted, describeJSON(t, entry.Type, entry.Value))
	}
	i := 0
	for entry, err := range s.All() {
		if err != nil || i >= len(keys) {
			t.Fatalf("entry %d of %d: %v", i, len(keys), err)
		}
		if entry.Key != keys[i] || describe(entry.Value) != wanted[i] {
			t.Fatalf("entry %d: expected %q %s, found %q %s", i, keys[i], wanted[i], entry.Key,
				describe(entry.Value))
		}
		i++
	}
	if i != len(keys) {
		t.Fatalf("%d entries, found %d", len(keys), i)
	}
	for i, key := range keys {
		value, err := s.Get(key)
		if err != nil || describe(value) != wanted[i] {
			t.Fatalf("lookup of %.60q: expected %s, found %s: %v", key, wanted[i], value, err)
		}
		if err := checkTyped(s, key, value); err != nil {
			t.Fatalf("%.60q: %v", key, err)
		}
	}
	for _, absent := range expected.Absent {
		key := keyOf(t, absent)
		keys = append(keys, key)
		if value, err := s.Get(key); err != nil || value.Exists() {
			t.Fatalf("lookup of the absent key %q: found %v: %v", key, value, err)
		}
		if err := checkTyped(s, key, Value{}); err != nil {
			t.Fatalf("%.60q: %v", key, err)
		}
	}
	checkMany(t, s, keys, wanted)
}

// checkMany expects values from GetMany for the first keys, and none for the others.
func checkMany(t *testing.T, s *Snapshot, keys, wanted []string) {
	t.Helper()
	values := make([]Value, len(keys))
	if err := s.GetMany(keys, values); err != nil {
		t.Fatal(err)
	}
	for i, value := range values {
		if i >= len(wanted) {
			if value.Exists() {
				t.Fatalf("GetMany of the absent key %q: found %v", keys[i], value)
			}
		} else if describe(value) != wanted[i] {
			t.Fatalf("GetMany of %.60q: expected %s, found %v", keys[i], wanted[i], value)
		}
	}
}

// checkTyped compares all typed lookups of a key with its value.
func checkTyped(s *Snapshot, key string, value Value) error {
	isList := value.Type() == TypeEmptyList
	for _, lookup := range []struct {
		wanted Type
		isList bool
		get    func() (any, bool, error)
	}{
		{TypeBytes, false, lookupOf(s.GetBytes, key)},
		{TypeString, false, lookupOf(s.GetString, key)},
		{TypeBool, false, lookupOf(s.GetBool, key)},
		{TypeInt64, false, lookupOf(s.GetInt64, key)},
		{TypeFloat64, false, lookupOf(s.GetFloat64, key)},
		{TypeInt64s, true, lookupOf(s.GetInt64s, key)},
		{TypeFloat64s, true, lookupOf(s.GetFloat64s, key)},
		{TypeFloat32s, true, lookupOf(s.GetFloat32s, key)},
		{TypeStrings, true, lookupOf(s.GetStrings, key)},
	} {
		found, ok, err := lookup.get()
		switch {
		case !value.Exists():
			if ok || err != nil {
				return fmt.Errorf("%s of a missing key: %v, %v", lookup.wanted, ok, err)
			}
		case value.Type() == lookup.wanted:
			same := fmt.Sprintf("%T %#v", found, found) ==
				fmt.Sprintf("%T %#v", value.Any(), value.Any())
			if !ok || err != nil || !same {
				return fmt.Errorf("%s: %v, %v, %v", lookup.wanted, found, ok, err)
			}
		case isList && lookup.isList:
			if !ok || err != nil || reflect.ValueOf(found).Len() != 0 {
				return fmt.Errorf("%s of an empty list: %v, %v, %v", lookup.wanted, found, ok, err)
			}
		default:
			if ok || CodeOf(err) != CodeWrongType {
				return fmt.Errorf("%s of a %s: %v, %v", lookup.wanted, value.Type(), ok, err)
			}
		}
	}
	exists, err := s.Contains(key)
	if err != nil || exists != value.Exists() {
		return fmt.Errorf("Contains: %v, %v", exists, err)
	}
	found, err := s.TypeOf(string(Key([]byte(key))))
	if err != nil || found != value.Type() {
		return fmt.Errorf("TypeOf: %v, %v", found, err)
	}
	return nil
}

// lookupOf returns a typed lookup of a key with a result of any type.
func lookupOf[T any](get func(string) (T, bool, error), key string) func() (any, bool, error) {
	return func() (any, bool, error) {
		value, ok, err := get(key)
		return value, ok, err
	}
}

// TestBadFiles opens, verifies and reads every damaged file, and expects the errors of its case.
func TestBadFiles(t *testing.T) {
	var cases []badCase
	readJSON(t, filepath.Join(vectors, "bad", "cases.json"), &cases)
	folder := t.TempDir()
	copyShards(t, folder)
	documents := map[string]*document{}
	for i := range cases {
		c := &cases[i]
		passed := t.Run(c.File+": "+c.Name, func(t *testing.T) {
			path := filepath.Join(folder, "case.nut")
			writeFile(t, path, damagedFile(t, c))
			defer os.Remove(path)
			good := c.Of
			if good == "" {
				good = c.File
			}
			if documents[good] == nil {
				documents[good] = readDocument(t, good)
			}
			checkBad(t, path, c, documents[good])
		})
		if passed {
			passedCases = append(passedCases, c.File+": "+c.Name)
		}
	}
}

func checkBad(t *testing.T, path string, c *badCase, good *document) {
	s, err := Open(path)
	checkDamage(t, "open", c.Open, err)
	if err != nil {
		return
	}
	defer s.Close()
	checkDamage(t, "verify", c.Verify, s.Verify())
	if c.Verify == nil {
		checkEntries(t, s, good)
		return
	}
	var keys []string
	for _, entry := range good.Entries {
		keys = append(keys, keyOf(t, entry.Key))
	}
	for _, absent := range good.Absent {
		keys = append(keys, keyOf(t, absent))
	}
	if err := readEverything(s, keys); err != nil {
		t.Error(err)
	}
	if c.Get == nil {
		return
	}
	key := keyOf(t, c.Get.Key)
	value, err := s.Get(key)
	if found := answerOf(value, err); found != c.Get.Answer {
		t.Errorf("lookup of %q: expected %s, found %s: %v", key, c.Get.Answer, found, err)
	}
	if c.Get.Answer == string(CodeCorrupt) && CodeOf(firstError(s)) != CodeCorrupt {
		t.Errorf("iteration: expected corrupt, found %v", firstError(s))
	}
}

func checkDamage(t *testing.T, what string, expected *damage, err error) {
	t.Helper()
	found, _ := err.(*Error)
	switch {
	case expected == nil && err == nil:
	case expected == nil || found == nil:
		t.Fatalf("%s: expected %v, found %v", what, expected, err)
	case *expected != damage{Code: found.Code, Offset: found.Offset}:
		t.Fatalf("%s: expected %v, found %v", what, *expected, err)
	}
}

// answerOf returns the result of a lookup: "corrupt" or another code, "absent" or "value".
func answerOf(value Value, err error) string {
	switch {
	case err != nil:
		return string(CodeOf(err))
	case !value.Exists():
		return "absent"
	}
	return "value"
}

// firstError returns the first error of an iteration, or nil.
func firstError(s *Snapshot) error {
	for _, err := range s.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// readEverything calls all lookups of the keys and iterates. It returns an error if one of them
// returns another error than corrupt or wrong-type, or if lookups contradict each other.
func readEverything(s *Snapshot, keys []string) error {
	for _, key := range keys {
		value, err := s.Get(key)
		if err != nil && CodeOf(err) != CodeCorrupt {
			return err
		}
		if _, err := s.TypeOf(key); err != nil && CodeOf(err) != CodeCorrupt {
			return err
		}
		if err != nil {
			continue
		}
		if err := checkTyped(s, key, value); err != nil {
			return fmt.Errorf("%.60q: %w", key, err)
		}
		_ = describe(value)
	}
	for entry, err := range s.All() {
		if err != nil && CodeOf(err) != CodeCorrupt {
			return err
		}
		_ = describe(entry.Value)
	}
	if err := s.GetMany(keys, make([]Value, len(keys))); err != nil && CodeOf(err) != CodeCorrupt {
		return err
	}
	if _, err := s.Metadata(); err != nil && CodeOf(err) != CodeCorrupt {
		return err
	}
	return nil
}
