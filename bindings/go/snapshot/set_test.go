package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenWithVerifyReturnsDamageThatOpeningDoesNotCheck(t *testing.T) {
	path := filepath.Join(vectors, "bad", "index-checksum.nut")
	mustOpen(t, path).Close()
	if s, err := Open(path, WithVerify()); s != nil || CodeOf(err) != CodeCorrupt {
		t.Error(err)
	}
	mustOpen(t, filepath.Join(vectors, "v1", "types.nut"), WithVerify()).Close()
}

func TestASetWithAMissingShardIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "set.nut")
	writeFile(t, path, readFile(t, filepath.Join(vectors, "v1", "set-3.nut")))
	_, err := Open(path)
	if CodeOf(err) != CodeIO || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestASetThatIsReplacedWhileItIsOpened replaces the set when its second shard is opened: removes
// the shard, and publishes another set or a file.
func TestASetThatIsReplacedWhileItIsOpened(t *testing.T) {
	for _, name := range []string{"set-7.nut", "types.nut"} {
		t.Run(name, func(t *testing.T) { replaceWhileOpened(t, name) })
	}
}

func replaceWhileOpened(t *testing.T, name string) {
	path := copyVector(t, "set-3.nut")
	settings := newSettings(nil)
	settings.openMapping = func(file string, residency Residency) (mapping, error) {
		if strings.HasPrefix(filepath.Base(file), "00001-ee49") {
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
			replaceWith(t, path, name)
		}
		return openMapping(file, residency)
	}
	s, err := open(path, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	checkEntries(t, s, readDocument(t, "v1/"+name))
}
