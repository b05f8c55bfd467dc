package snapshot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// replaceWith renames a copy of a good file over a path.
func replaceWith(t testing.TB, path, name string) {
	t.Helper()
	publish(t, path, readFile(t, filepath.Join(vectors, "v1", name)))
}

// publish writes a file and renames it over a path.
func publish(t testing.TB, path string, content []byte) {
	t.Helper()
	writeFile(t, path+".new", content)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// mustWatch watches a path without polls.
func mustWatch(t testing.TB, path string, options ...Option) *Watcher {
	t.Helper()
	w, err := Watch(path, append([]Option{WithInterval(0)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestAWatchSwitchesToTheNewestGoodFile(t *testing.T) {
	path := copyVector(t, "one.nut")
	var events []Event
	w := mustWatch(t, path, WithReport(func(e Event) { events = append(events, e) }))
	if w.Refresh() || w.Current().Len() != 1 {
		t.Fatal("the first file is served")
	}
	before := w.Current()
	replaceWith(t, path, "entries-14.nut")
	if !w.Refresh() || w.Current().Len() != 14 || before.Len() != 1 {
		t.Fatal("the second file is served, and the first one stays open")
	}
	publish(t, path, []byte("damaged"))
	for range 3 {
		if w.Refresh() || w.Current().Len() != 14 {
			t.Fatal("a damaged file is not served")
		}
	}
	if s := w.Status(); CodeOf(s.Err) != CodeNotASnapshot || s.Switched != 1 || s.Rejected != 1 {
		t.Errorf("status: %+v", s)
	}
	replaceWith(t, path, "set-3.nut")
	if !w.Refresh() || w.Current().Len() != 37 || w.Status().Err != nil {
		t.Errorf("status: %+v", w.Status())
	}
	if len(events) != 3 || events[0].Snapshot.Len() != 14 || events[1].Err == nil ||
		events[2].Snapshot != w.Current() {
		t.Errorf("events: %v", events)
	}
}

func TestAMissingFileIsReportedOnce(t *testing.T) {
	path := copyVector(t, "one.nut")
	if _, err := Watch(path + ".missing"); CodeOf(err) != CodeIO {
		t.Error(err)
	}
	w := mustWatch(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.Refresh()
	w.Refresh()
	if s := w.Status(); CodeOf(s.Err) != CodeIO || s.Rejected != 1 || w.Current().Len() != 1 {
		t.Errorf("status: %+v", s)
	}
	replaceWith(t, path, "one.nut")
	if !w.Refresh() || w.Status().Err != nil {
		t.Errorf("status: %+v", w.Status())
	}
}

func TestAWatchVerifiesFilesIfItsOptionsSaySo(t *testing.T) {
	path := copyVector(t, "one.nut")
	w := mustWatch(t, path, WithVerify())
	damaged := readFile(t, filepath.Join(vectors, "v1", "entries-14.nut"))
	damaged[len(damaged)-1] = 1
	publish(t, path, damaged)
	if w.Refresh() || CodeOf(w.Status().Err) != CodeCorrupt {
		t.Errorf("status: %+v", w.Status())
	}
}

// watchWithOpener watches a path, and opens files with a function.
func watchWithOpener(t *testing.T, path string, open func() (*Snapshot, error)) *Watcher {
	t.Helper()
	w, err := watchWith(path, newSettings([]Option{WithInterval(0)}), open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestAFileThatCouldNotBeOpenedIsTriedAgainWithBackOff(t *testing.T) {
	path := copyVector(t, "one.nut")
	opened := 0
	w := watchWithOpener(t, path, func() (*Snapshot, error) {
		if opened++; opened > 1 && opened <= 10 {
			return nil, ioError(path, "open", syscall.EMFILE)
		}
		return Open(path)
	})
	replaceWith(t, path, "entries-14.nut")
	var openedAt []int
	for poll := 1; w.Status().Switched == 0; poll++ {
		before := opened
		w.follower.poll(false)
		if opened > before {
			openedAt = append(openedAt, poll)
		}
		if poll == 1000 {
			t.Fatal("the file is not tried again")
		}
	}
	if !slices.Equal(openedAt, []int{1, 2, 4, 8, 16, 32, 64, 128, 192, 256}) {
		t.Errorf("polls: %v", openedAt)
	}
	if s := w.Status(); s.Rejected != 1 || s.Err != nil {
		t.Errorf("status: %+v", s)
	}
}

func TestADamagedFileIsTriedAgainByRefreshOnly(t *testing.T) {
	path := copyVector(t, "one.nut")
	opened := 0
	w := watchWithOpener(t, path, func() (*Snapshot, error) { opened++; return Open(path) })
	publish(t, path, []byte("damaged"))
	for range 300 {
		w.follower.poll(false)
	}
	if opened != 2 {
		t.Errorf("opened %d times", opened)
	}
	if w.Refresh() || opened != 3 {
		t.Errorf("opened %d times", opened)
	}
}

func TestAWatchPolls(t *testing.T) {
	path := copyVector(t, "one.nut")
	switched := make(chan uint64)
	w, err := Watch(path, WithInterval(time.Millisecond), WithReport(func(e Event) {
		if e.Snapshot != nil {
			switched <- e.Snapshot.Len()
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	replaceWith(t, path, "entries-14.nut")
	if entries := <-switched; entries != 14 {
		t.Errorf("%d entries", entries)
	}
	w.Close()
	if _, err := w.Current().Get("key"); !errors.Is(err, ErrClosed) || w.Refresh() {
		t.Errorf("a closed watch returned %v", err)
	}
}

func TestTheFunctionForEventsMayCallTheWatchAndPanic(t *testing.T) {
	path := copyVector(t, "one.nut")
	var w *Watcher
	var served []uint64
	w = mustWatch(t, path, WithReport(func(e Event) {
		served = append(served, w.Current().Len())
		if e.Snapshot.Len() == 14 {
			replaceWith(t, path, "entries-15.nut")
			if !w.Refresh() || w.Status().Switched != 2 {
				t.Errorf("status: %+v", w.Status())
			}
			return
		}
		w.Close()
		panic("a function of the test")
	}))
	replaceWith(t, path, "entries-14.nut")
	w.Refresh()
	if !slices.Equal(served, []uint64{14, 15}) || w.Status().Panic != "a function of the test" {
		t.Errorf("served %v, status: %+v", served, w.Status())
	}
}

func TestReplacedFilesAreUnmappedAfterTheRetentionWhenNoReaderHasThem(t *testing.T) {
	path := copyVector(t, "one.nut")
	folder := filepath.Dir(path)
	w := mustWatch(t, path, WithRetention(time.Minute))
	now := time.Now()
	w.follower.now = func() time.Time { return now }
	before := w.Current()
	view, _, err := before.GetString("key")
	if err != nil {
		t.Fatal(err)
	}
	replaceWith(t, path, "set-3.nut")
	w.Refresh()
	now = now.Add(59 * time.Second)
	w.Refresh()
	if len(w.follower.retired) != 1 {
		t.Fatal("a replaced file is kept for the retention")
	}
	now = now.Add(2 * time.Second)
	w.Refresh()
	if len(w.follower.retired) != 0 {
		t.Fatal("a replaced file is not kept after the retention")
	}
	for range 5 {
		runtime.GC()
	}
	if view != "value" {
		t.Errorf("%q", view)
	}
	runtime.KeepAlive(before)
	if runtime.GOOS == "linux" {
		waitUntilUnmapped(t, filepath.Join(folder, "copy.nut"))
	}
}

// TestReadersOfAWatchUnderLoad replaces files while goroutines read, with garbage collection.
func TestReadersOfAWatchUnderLoad(t *testing.T) {
	path := copyVector(t, "entries-20000.nut")
	w := mustWatch(t, path, WithRetention(0))
	keys := []string{"10230", "absent"}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := w.Current()
				value, err := s.Get(keys[0])
				if err != nil {
					t.Error(err)
					return
				}
				_ = describe(value)
				if err := s.GetMany(keys, make([]Value, 2)); err != nil {
					t.Error(err)
					return
				}
				runtime.KeepAlive(s)
			}
		})
	}
	for i := range 30 {
		replaceWith(t, path, []string{"types.nut", "set-3.nut", "entries-20000.nut"}[i%3])
		if !w.Refresh() {
			t.Errorf("status: %+v", w.Status())
		}
		runtime.GC()
	}
	close(stop)
	readers.Wait()
	w.Close()
	if runtime.GOOS == "linux" {
		waitUntilUnmapped(t, filepath.Dir(path))
	}
}

func TestAWatchOfARelativePathStaysWithItsFileAfterAChangeOfTheWorkingDirectory(t *testing.T) {
	path := copyVector(t, "one.nut")
	t.Chdir(filepath.Dir(path))
	w := mustWatch(t, filepath.Base(path))
	t.Chdir(t.TempDir())
	content := readFile(t, path)
	publish(t, path, content)
	if !w.Refresh() || w.Status().Path != path {
		t.Errorf("status: %+v", w.Status())
	}
}

// mapsOf returns the number of maps of files in a folder.
func mapsOf(t *testing.T, folder string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(maps, []byte(folder+"/"))
}

func TestAReplacedFileIsUnmappedWhenItsLastReaderHasFinishedWithoutACollection(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if runtime.GOOS != "linux" {
		t.Log("requires /proc/self/maps")
		return
	}
	path := copyVector(t, "set-3.nut")
	folder := filepath.Dir(path)
	w := mustWatch(t, path)
	first, finishFirst := w.Acquire()
	_, finishSecond := w.Acquire()
	replaceWith(t, path, "one.nut")
	if !w.Refresh() || mapsOf(t, folder) != 4 {
		t.Fatalf("%d maps with two readers", mapsOf(t, folder))
	}
	finishSecond()
	if mapsOf(t, folder) != 4 || first.Len() != 37 {
		t.Fatalf("%d maps with one reader", mapsOf(t, folder))
	}
	finishFirst()
	if mapsOf(t, folder) != 1 {
		t.Fatalf("%d maps without readers", mapsOf(t, folder))
	}
	if _, err := first.Get("key"); !errors.Is(err, ErrClosed) {
		t.Errorf("a finished reader found %v", err)
	}
	// Without any reader, at once.
	replaceWith(t, path, "types.nut")
	if !w.Refresh() || mapsOf(t, folder) != 1 {
		t.Fatalf("%d maps after a switch without readers", mapsOf(t, folder))
	}
	// After Current, by the collection that the watch starts.
	_ = w.Current().Len()
	w.follower.settings.retention = 0
	replaceWith(t, path, "one.nut")
	w.Refresh()
	for mapsOf(t, folder) != 1 {
		runtime.Gosched()
	}
}

func TestReadersThatAcquireUnderLoad(t *testing.T) {
	path := copyVector(t, "entries-20000.nut")
	w := mustWatch(t, path)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s, finish := w.Acquire()
				if _, err := s.Get("10230"); err != nil {
					t.Error(err)
				}
				finish()
			}
		})
	}
	for i := range 300 {
		replaceWith(t, path, []string{"types.nut", "set-3.nut", "entries-20000.nut"}[i%3])
		if !w.Refresh() {
			t.Errorf("status: %+v", w.Status())
		}
	}
	close(stop)
	readers.Wait()
	w.Close()
	if s, finish := w.Acquire(); s.Len() != 0 {
		t.Error("a closed watch has entries")
	} else {
		finish()
	}
	if runtime.GOOS == "linux" {
		waitUntilUnmapped(t, filepath.Dir(path))
	}
}

// TestCloseUnmapsNothingThatAReaderHas closes a watch while a reader of Acquire has views, of a
// snapshot that Current has or has not returned.
func TestCloseUnmapsNothingThatAReaderHas(t *testing.T) {
	for _, isShared := range []bool{false, true} {
		path := copyVector(t, "one.nut")
		w := mustWatch(t, path)
		s, finish := w.Acquire()
		view, _, err := s.GetString("key")
		if err != nil {
			t.Fatal(err)
		}
		if isShared {
			w.Current()
		}
		w.Close()
		for range 5 {
			runtime.GC()
		}
		if view != "value" {
			t.Errorf("%q", view)
		}
		if _, _, err := s.GetString("key"); err != nil {
			t.Errorf("a reader found %v after Close", err)
		}
		if w.Current().Len() != 0 {
			t.Error("a closed watch has entries")
		}
		finish()
		if _, err := s.Get("key"); !errors.Is(err, ErrClosed) {
			t.Errorf("a finished reader found %v", err)
		}
		if runtime.GOOS != "linux" {
			continue
		}
		if !isShared && mapsOf(t, filepath.Dir(path)) != 0 {
			t.Error("a file that is not shared is unmapped at once")
		}
		waitUntilUnmapped(t, filepath.Dir(path))
	}
}
