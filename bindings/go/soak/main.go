// Command soak is a reader for scripts/follow_soak: soak PATH INTERVAL_MS KEYS.
//
// It watches the snapshot at PATH, in which the keys key:0 to key:KEYS-1 all have the number of the
// generation as text. It prints "generation N" when it reads a later one than before. If it finds
// another value than expected, it prints both and fails. It runs until it is killed.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nuthatch-kv/nuthatch/bindings/go/snapshot"
)

// pause is the time between two groups of lookups. Six readers share the processors with the
// follower.
const pause = time.Millisecond

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: soak PATH INTERVAL_MS KEYS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// run reads until standard output is closed.
func run(path, intervalMs, keys string) error {
	interval, err := time.ParseDuration(intervalMs + "ms")
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(keys)
	if err != nil {
		return err
	}
	watch, err := snapshot.Watch(
		path, snapshot.WithInterval(interval), snapshot.WithRetention(interval),
	)
	if err != nil {
		return err
	}
	defer watch.Close()
	for last := 0; ; {
		generation, err := read(watch.Current(), count)
		if err != nil {
			return err
		}
		if generation < last {
			return fmt.Errorf("key:0: expected %d or more, found %d", last, generation)
		}
		if generation > last {
			if _, err := fmt.Printf("generation %d\n", generation); err != nil {
				return err
			}
		}
		last = generation
	}
}

// read returns the generation of a snapshot.
func read(current *snapshot.Snapshot, keys int) (int, error) {
	generation, err := value(current, 0)
	for key := 1; key < keys && err == nil; key++ {
		if key == keys/2 {
			// The follower may replace the file here: the snapshot stays readable.
			time.Sleep(pause)
		}
		var found int
		found, err = value(current, key)
		if err == nil && found != generation {
			err = fmt.Errorf("key:%d: expected %d, found %d", key, generation, found)
		}
	}
	return generation, err
}

func value(current *snapshot.Snapshot, key int) (int, error) {
	name := fmt.Sprintf("key:%d", key)
	text, _, err := current.GetString(name)
	if err != nil {
		return 0, err
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: expected a number, found %q", name, text)
	}
	return number, nil
}
