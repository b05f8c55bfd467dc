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

// mustLink makes a symbolic link, or switches it by the rename of a new link over it.
func mustLink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
}

// countOpens returns settings that count the calls of openMapping.
func countOpens() (*settings, *int) {
	settings, opens := newSettings(nil), 0
	settings.openMapping = func(file string, residency Residency) (mapping, error) {
		opens++
		return openMapping(file, residency)
	}
	return settings, &opens
}

func TestALinkInAnotherFolderOpensTheSetOfItsManifest(t *testing.T) {
	path := copyVector(t, "set-3.nut")
	folder := t.TempDir()
	link := filepath.Join(folder, "current.nut")
	relative, err := filepath.Rel(folder, path)
	if err != nil {
		t.Fatal(err)
	}
	mustLink(t, relative, link)
	mustLink(t, filepath.Dir(path), filepath.Join(folder, "current"))
	mustLink(t, filepath.Base(path), filepath.Join(filepath.Dir(path), "same-folder.nut"))
	for _, c := range []struct {
		path  string
		opens int // of the manifest and three shards
	}{
		{link, 5},
		{path, 4},
		{filepath.Join(folder, "current", filepath.Base(path)), 4},
		{filepath.Join(filepath.Dir(path), "same-folder.nut"), 4},
	} {
		settings, opens := countOpens()
		s, err := open(c.path, settings)
		if err != nil {
			t.Fatal(err)
		}
		checkEntries(t, s, readDocument(t, "v1/set-3.nut"))
		if s.Path() != c.path || *opens != c.opens {
			t.Errorf("%s: path %s, %d opens", c.path, s.Path(), *opens)
		}
		s.Close()
	}
	// An error of the manifest names the link.
	content := readFile(t, path)
	writeFile(t, path, content[:len(content)-1])
	var failed *Error
	if _, err := Open(link); !errors.As(err, &failed) || failed.Path != link {
		t.Error(err)
	}
}

func TestAMissingShardBehindALinkIsAnErrorThatNamesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "set.nut")
	writeFile(t, path, readFile(t, filepath.Join(vectors, "v1", "set-3.nut")))
	link := filepath.Join(t.TempDir(), "current.nut")
	mustLink(t, path, link)
	settings, opens := countOpens()
	_, err := open(link, settings)
	folder, _ := filepath.EvalSymlinks(filepath.Dir(path))
	var failed *Error
	if !errors.As(err, &failed) || !errors.Is(err, fs.ErrNotExist) ||
		filepath.Dir(failed.Path) != folder {
		t.Error(err)
	}
	// The link, the manifest, the first shard, and the link again.
	if *opens != 4 {
		t.Errorf("%d opens", *opens)
	}
}

// TestALinkThatIsSwitchedWhileItsSetIsOpened switches the link when the second shard is opened:
// removes the folder of the set, and links to another set, to one with the same bytes, or to a
// file.
func TestALinkThatIsSwitchedWhileItsSetIsOpened(t *testing.T) {
	for _, name := range []string{"set-7.nut", "set-3.nut", "types.nut"} {
		t.Run(name, func(t *testing.T) {
			before, after := copyVector(t, "set-3.nut"), copyVector(t, name)
			link := filepath.Join(t.TempDir(), "current.nut")
			mustLink(t, before, link)
			settings := newSettings(nil)
			isSwitched := false
			settings.openMapping = func(file string, residency Residency) (mapping, error) {
				if !isSwitched && strings.HasPrefix(filepath.Base(file), "00001-ee49") {
					isSwitched = true
					if err := os.RemoveAll(filepath.Dir(before)); err != nil {
						t.Error(err)
					}
					mustLink(t, after, link)
				}
				return openMapping(file, residency)
			}
			s, err := open(link, settings)
			if err != nil || !isSwitched {
				t.Fatal(err, isSwitched)
			}
			defer s.Close()
			checkEntries(t, s, readDocument(t, "v1/"+name))
		})
	}
}

// TestASetThatIsRemovedBeforeItsManifestIsReadAgain switches the link and removes the set between
// the two reads of the manifest.
func TestASetThatIsRemovedBeforeItsManifestIsReadAgain(t *testing.T) {
	before, after := copyVector(t, "set-3.nut"), copyVector(t, "set-7.nut")
	resolved, err := filepath.EvalSymlinks(before)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "current.nut")
	mustLink(t, before, link)
	settings := newSettings(nil)
	settings.openMapping = func(file string, residency Residency) (mapping, error) {
		if file == resolved {
			if err := os.RemoveAll(filepath.Dir(resolved)); err != nil {
				t.Error(err)
			}
			mustLink(t, after, link)
		}
		return openMapping(file, residency)
	}
	s, err := open(link, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	checkEntries(t, s, readDocument(t, "v1/set-7.nut"))
}

func TestAWatchSwitchesWhenALinkIsSwitchedToAnotherSet(t *testing.T) {
	three, seven := copyVector(t, "set-3.nut"), copyVector(t, "set-7.nut")
	link := filepath.Join(t.TempDir(), "current.nut")
	mustLink(t, three, link)
	w := mustWatch(t, link)
	for _, c := range []struct {
		target string
		shards int
	}{{seven, 7}, {three, 3}} {
		if w.Refresh() {
			t.Error("nothing is new")
		}
		mustLink(t, c.target, link)
		if !w.Refresh() || w.Current().Path() != link {
			t.Fatalf("%s: %+v", c.target, w.Status())
		}
		if files, err := w.Current().files(); err != nil || len(files) != c.shards {
			t.Error(len(files), err)
		}
	}
}

// TestOnlyThePathOfTheCallerIsLookedUpAgain counts the lookups of a missing file and a missing
// shard.
func TestOnlyThePathOfTheCallerIsLookedUpAgain(t *testing.T) {
	path := copyVector(t, "set-3.nut")
	settings, opens := countOpens()
	if _, err := open(path+".missing", settings); CodeOf(err) != CodeIO || *opens != maxLookups {
		t.Errorf("%d lookups of a missing file: %v", *opens, err)
	}
	shards, err := filepath.Glob(filepath.Join(filepath.Dir(path), "00000-*.shard"))
	if err != nil || len(shards) == 0 {
		t.Fatal(shards, err)
	}
	for _, shard := range shards {
		if err := os.Remove(shard); err != nil {
			t.Fatal(err)
		}
	}
	// The manifest, the shard, and the manifest again, which is the same.
	settings, opens = countOpens()
	if _, err := open(path, settings); CodeOf(err) != CodeIO || *opens != 3 {
		t.Errorf("%d lookups of a missing shard: %v", *opens, err)
	}
}
