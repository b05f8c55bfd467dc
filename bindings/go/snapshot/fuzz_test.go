package snapshot

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// documented returns whether an error is one that a damaged file may cause.
func documented(err error) bool {
	switch CodeOf(err) {
	case CodeNotASnapshot, CodeUnsupported, CodeCorrupt:
		return true
	}
	return false
}

// readDamaged opens the bytes of a damaged file and reads everything. It fails the test for an
// error that is not documented, and for contradictions.
func readDamaged(t testing.TB, content []byte, keys []string) {
	t.Helper()
	if bytes.HasPrefix(content, []byte(manifestMagic)) {
		if _, err := decodeManifest(content, "fuzzed.nut"); err != nil && !documented(err) {
			t.Fatal(err)
		}
		return
	}
	s, err := FromBytes(content)
	if err != nil {
		if !documented(err) {
			t.Fatal(err)
		}
		return
	}
	verified := s.Verify()
	if verified != nil && CodeOf(verified) != CodeCorrupt {
		t.Fatal(verified)
	}
	if verified == nil {
		if err := firstError(s); err != nil {
			t.Fatalf("verified, but %v", err)
		}
	}
	if err := readEverything(s, keys); err != nil {
		t.Fatal(err)
	}
}

// keysOf returns keys of a good file, at most 50 of them, and some absent ones.
func keysOf(t testing.TB, name string) []string {
	t.Helper()
	keys := []string{"", "absent"}
	for _, entry := range readDocument(t, name).Entries {
		if len(keys) == 52 {
			break
		}
		keys = append(keys, keyOf(t, entry.Key))
	}
	return keys
}

// TestRandomDamage changes good files at random, with a fixed seed.
func TestRandomDamage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var files []string
	for _, name := range goodFiles(t) {
		if len(readFile(t, filepath.Join(vectors, name))) < 32<<10 {
			files = append(files, name)
		}
	}
	const mutations = 10_000
	for _, name := range files {
		content, keys := readFile(t, filepath.Join(vectors, name)), keysOf(t, name)
		for i := range mutations / len(files) {
			damaged := mutate(random, content)
			if i%2 == 0 {
				mendChecksums(damaged)
			}
			readDamaged(t, damaged, keys)
		}
	}
}

// mutate returns a copy of a file with random changes.
func mutate(random *rand.Rand, content []byte) []byte {
	damaged := bytes.Clone(content)
	for range 1 + random.IntN(4) {
		at := random.IntN(len(damaged))
		if random.IntN(3) == 0 {
			at = random.IntN(min(len(damaged), headerLen))
		}
		switch random.IntN(6) {
		case 0:
			damaged[at] = byte(random.Uint32())
		case 1:
			damaged[at] ^= 1 << random.IntN(8)
		case 2:
			for i := at; i < min(at+8, len(damaged)); i++ {
				damaged[i] = byte(random.IntN(2) * 255)
			}
		case 3:
			copy(damaged[at:], damaged[random.IntN(at+1):][:min(16, len(damaged)-at)])
		case 4:
			damaged[at] += byte(random.IntN(3)) - 1
		case 5:
			if random.IntN(20) == 0 {
				damaged = damaged[:at+1]
			}
		}
	}
	return damaged
}

// FuzzOpen opens and reads any bytes, also with mended checksums.
func FuzzOpen(f *testing.F) {
	for _, name := range goodFiles(f) {
		if content := readFile(f, filepath.Join(vectors, name)); len(content) < 8<<10 {
			f.Add(content)
		}
	}
	keys := append(keysOf(f, "v1/types.nut"), keysOf(f, "v1/shared.nut")...)
	f.Fuzz(func(t *testing.T, content []byte) {
		readDamaged(t, content, keys)
		mended := bytes.Clone(content)
		mendChecksums(mended)
		readDamaged(t, mended, keys)
	})
}
