package snapshot

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// vectors is the folder of the files that the tests of all languages share.
const vectors = "../../../testdata/snapshot"

// document is the JSON document of a good file.
type document struct {
	Stats    map[string]any `json:"stats"`
	Shards   uint64         `json:"shards"`
	Metadata map[string]any `json:"metadata"`
	Absent   []any          `json:"absent"`
	Entries  []struct {
		Key   any    `json:"key"`
		Type  string `json:"type"`
		Value any    `json:"value"`
	} `json:"entries"`
}

// badCase is a case of bad/cases.json.
type badCase struct {
	Name   string  `json:"name"`
	File   string  `json:"file"`
	Of     string  `json:"of"`
	Length *int    `json:"length"`
	Open   *damage `json:"open"`
	Verify *damage `json:"verify"`
	Patch  []struct {
		At  int    `json:"at"`
		Hex string `json:"hex"`
	} `json:"patch"`
	Get *struct {
		Key    any    `json:"key"`
		Answer string `json:"answer"`
	} `json:"get"`
}

// damage is the expected error of a bad case.
type damage struct {
	Code   Code   `json:"code"`
	Offset uint64 `json:"offset"`
}

// readJSON decodes a file. Numbers keep their text.
func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	text := readFile(t, path)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// goodFiles returns the paths of the good files below vectors, such as v1/types.nut.
func goodFiles(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(vectors, "v*", "*.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	var names []string
	for _, path := range found {
		name := filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
		names = append(names, strings.TrimSuffix(name, ".json")+".nut")
	}
	return names
}

func readDocument(t testing.TB, file string) *document {
	t.Helper()
	d := &document{}
	readJSON(t, filepath.Join(vectors, strings.TrimSuffix(file, ".nut")+".json"), d)
	return d
}

// keyOf returns a key from its form in JSON.
func keyOf(t testing.TB, key any) string {
	t.Helper()
	if text, ok := key.(string); ok {
		return text
	}
	decoded, err := base64.StdEncoding.DecodeString(key.(map[string]any)["$bytes"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return string(decoded)
}

// describeJSON returns a text that determines a value and its type, from its form in JSON.
func describeJSON(t testing.TB, kind string, value any) string {
	t.Helper()
	if object, ok := value.(map[string]any); ok {
		for _, inner := range object {
			value = inner
		}
	}
	var parts []string
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	element := strings.TrimPrefix(kind, "list of ")
	for _, item := range list {
		parts = append(parts, describeScalar(t, element, item))
	}
	return kind + ": " + strings.Join(parts, " ")
}

func describeScalar(t testing.TB, kind string, value any) string {
	t.Helper()
	switch kind {
	case "bytes":
		return fmt.Sprintf("%q", keyOf(t, map[string]any{"$bytes": value}))
	case "string":
		return fmt.Sprintf("%q", value)
	case "f64":
		return fmt.Sprintf("%#x", floatBits(t, value, 64))
	case "f32":
		return fmt.Sprintf("%#x", floatBits(t, value, 32))
	}
	return fmt.Sprint(value)
}

// floatBits returns the bits of a float from its form in JSON.
func floatBits(t testing.TB, value any, size int) uint64 {
	t.Helper()
	text := fmt.Sprint(value)
	if after, ok := strings.CutPrefix(text, "0x"); ok {
		found, err := strconv.ParseUint(after, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if text == "NaN" {
		if size == 32 {
			return 0x7fc00000
		}
		return 0x7ff8000000000000
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	if size == 32 {
		return uint64(math.Float32bits(float32(number)))
	}
	return math.Float64bits(number)
}

// describe returns the text of describeJSON for a value of a snapshot.
func describe(value Value) string {
	return describeAny(value.Type().String(), value.Any())
}

// describeAny returns the text of describeJSON for the result of a lookup.
func describeAny(kind string, value any) string {
	var parts []string
	add := func(format string, part any) { parts = append(parts, fmt.Sprintf(format, part)) }
	switch v := value.(type) {
	case []byte:
		add("%q", string(v))
	case string:
		add("%q", v)
	case float64:
		add("%#x", math.Float64bits(v))
	case []int64:
		for _, number := range v {
			add("%v", number)
		}
	case []float64:
		for _, number := range v {
			add("%#x", math.Float64bits(number))
		}
	case []float32:
		for _, number := range v {
			add("%#x", math.Float32bits(number))
		}
	case []string:
		for _, text := range v {
			add("%q", text)
		}
	case []any:
	default:
		add("%v", v)
	}
	return kind + ": " + strings.Join(parts, " ")
}

// damagedFile returns the bytes of a case: its file, cut or extended with zeros, and patched.
func damagedFile(t testing.TB, c *badCase) []byte {
	t.Helper()
	content := readFile(t, filepath.Join(vectors, c.File))
	if c.Length != nil {
		content = append(content, make([]byte, max(0, *c.Length-len(content)))...)[:*c.Length]
	}
	for _, patch := range c.Patch {
		changed, err := hex.DecodeString(patch.Hex)
		if err != nil {
			t.Fatal(err)
		}
		copy(content[patch.At:], changed)
	}
	return content
}

// copyShards copies the shards of the sets to a folder.
func copyShards(t testing.TB, folder string) {
	t.Helper()
	shards, err := filepath.Glob(filepath.Join(vectors, "v*", "*.shard"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range shards {
		writeFile(t, filepath.Join(folder, filepath.Base(path)), readFile(t, path))
	}
}

func writeFile(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// mendChecksums corrects the checksums of a damaged file as far as its header permits it, so that
// readers must find the damage by other checks.
func mendChecksums(content []byte) {
	hash := func(at uint64, part []byte) {
		binary.LittleEndian.PutUint64(content[at:], xxh3.Hash(part))
	}
	if bytes.HasPrefix(content, []byte(manifestMagic)) && len(content) >= manifestLen {
		shards := int(binary.LittleEndian.Uint32(content[manifestAtShards:]))
		if end := manifestLen + manifestEntryLen*shards; end <= len(content) {
			hash(manifestAtTableHash, content[manifestLen:end])
			hash(manifestAtMetaHash, content[end:])
		}
		hash(manifestAtHeaderHash, content[:manifestAtHeaderHash])
		return
	}
	if len(content) < headerLen {
		return
	}
	u64 := func(at uint64) uint64 { return binary.LittleEndian.Uint64(content[at:]) }
	part := func(offset, length uint64) []byte {
		if offset > uint64(len(content)) || length > uint64(len(content))-offset {
			return nil
		}
		return content[offset : offset+length]
	}
	bits := binary.LittleEndian.Uint32(content[atPartitionBits:])
	lines := uint64(binary.LittleEndian.Uint32(content[atLinesPerPartition:]))
	directory := u64(atDirectory)
	for p := range uint64(1) << min(bits, 4) {
		at := directory + p*directoryEntryLen
		if part(at, directoryEntryLen) == nil {
			break
		}
		index := part(u64(atIndex)+p*lines*lineLen, lines*lineLen)
		data := part(u64(atData)+u64(at+atDataOffset), u64(at+atDataLen))
		hash(at+atIndexHash, index)
		hash(at+atDataHash, data)
	}
	hash(atDictionaryHash, part(u64(atDictionary), u64(atDictionary+8)))
	hash(atDirectoryHash, part(u64(atDirectory), u64(atDirectory+8)))
	for at := uint64(atAdditional); at < atReserved; at += additionalEntryLen {
		if section := part(u64(at+additionalAtOffset), u64(at+additionalAtLength)); u64(at) != 0 {
			hash(at+additionalAtChecksum, section)
		}
	}
	hash(atHeaderHash, content[:atHeaderHash])
}

// passedCases collects the names of the cases that ran and passed.
var passedCases []string

func TestMain(m *testing.M) {
	if isChild() {
		return
	}
	code := m.Run()
	if path := os.Getenv("NUTHATCH_CASES"); path != "" {
		slices.Sort(passedCases)
		text := strings.Join(passedCases, "\n") + "\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// jsonOfBytes returns a value of the metadata in the form of JSON.
func jsonOfBytes(value []byte) any {
	if utf8.Valid(value) {
		return string(value)
	}
	return map[string]any{"$bytes": base64.StdEncoding.EncodeToString(value)}
}
