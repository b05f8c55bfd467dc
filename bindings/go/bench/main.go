// Command bench compares lookups in a snapshot with Go's map, bbolt and LMDB. Its argument is a
// snapshot of the keys key_0 to key_999999 with the strings val_0 to val_999999. It prints one JSON
// object per line: the median time of a lookup in nanoseconds. It also opens the file that
// BENCH_OPEN_FILE names, if it is set, and measures that.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/nuthatch-kv/nuthatch/bindings/go/snapshot"
	"go.etcd.io/bbolt"
)

const runs = 7

// system is a system that is measured: lookup returns the sum of the lengths of all values.
type system struct {
	name, operation string
	lookup          func(keys []string) (int, error)
	times           []float64
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bench FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	file, err := snapshot.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	copied, err := snapshot.Open(path, snapshot.WithResidency(snapshot.HugePages))
	if err != nil {
		return err
	}
	defer copied.Close()
	faults, err := snapshot.Open(path, snapshot.WithFaultErrors())
	if err != nil {
		return err
	}
	defer faults.Close()
	order := rand.New(rand.NewPCG(1, 2)).Perm(int(file.Len()))
	keys, expected := make([]string, len(order)), 0
	for i, number := range order {
		keys[i] = "key_" + strconv.Itoa(number)
		expected += len(keys[i])
	}
	folder, err := os.MkdirTemp("", "nuthatch-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	rows := sortedRows(len(order))
	tree, err := newTree(filepath.Join(folder, "bbolt"), rows)
	if err != nil {
		return err
	}
	defer tree.Close()
	database, err := newLMDB(filepath.Join(folder, "lmdb"), rows)
	if err != nil {
		return err
	}
	systems := []*system{
		{name: "nuthatch GetString", operation: "get", lookup: getString(file)},
		{name: "nuthatch Get", operation: "get", lookup: get(file)},
		{name: "nuthatch GetString, WithFaultErrors", operation: "get", lookup: getString(faults)},
		{name: "nuthatch GetString, HugePages", operation: "get", lookup: getString(copied)},
		{name: "nuthatch GetMany", operation: "get_many", lookup: getMany(file)},
		{name: "nuthatch GetMany, HugePages", operation: "get_many", lookup: getMany(copied)},
		{name: "map[string]string", operation: "get", lookup: mapLookup(len(order))},
		{name: "bbolt", operation: "get", lookup: treeLookup(tree)},
		{name: "LMDB through cgo", operation: "get", lookup: database.lookup},
	}
	for range runs {
		for _, s := range systems {
			start := time.Now()
			found, err := s.lookup(keys)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if found != expected {
				return fmt.Errorf("%s: %d bytes of values, expected %d", s.name, found, expected)
			}
			elapsed := float64(time.Since(start).Nanoseconds())
			s.times = append(s.times, elapsed/float64(len(keys)))
		}
	}
	if path := os.Getenv("BENCH_OPEN_FILE"); path != "" {
		opening, err := measureOpening(path)
		if err != nil {
			return err
		}
		systems = append(systems, opening)
	}
	return report(systems)
}

// measureOpening opens and closes a file many times.
func measureOpening(path string) (*system, error) {
	opening := &system{name: "nuthatch Open", operation: "open"}
	for range 101 {
		start := time.Now()
		file, err := snapshot.Open(path)
		if err != nil {
			return nil, err
		}
		file.Close()
		opening.times = append(opening.times, float64(time.Since(start).Nanoseconds()))
	}
	return opening, nil
}

// report prints the medians.
func report(systems []*system) error {
	encoder := json.NewEncoder(os.Stdout)
	for _, s := range systems {
		slices.Sort(s.times)
		if err := encoder.Encode(struct {
			Language  string  `json:"language"`
			System    string  `json:"system"`
			Operation string  `json:"operation"`
			Median    float64 `json:"ns"`
			Min       float64 `json:"min"`
			Max       float64 `json:"max"`
			Runs      int     `json:"runs"`
		}{"go", s.name, s.operation, round(s.times[len(s.times)/2]), round(s.times[0]),
			round(s.times[len(s.times)-1]), len(s.times)}); err != nil {
			return err
		}
	}
	return nil
}

func round(ns float64) float64 {
	return float64(int(ns*10+0.5)) / 10
}

func getString(s *snapshot.Snapshot) func([]string) (int, error) {
	return func(keys []string) (int, error) {
		sum := 0
		for _, key := range keys {
			value, _, err := s.GetString(key)
			if err != nil {
				return 0, err
			}
			sum += len(value)
		}
		return sum, nil
	}
}

func get(s *snapshot.Snapshot) func([]string) (int, error) {
	return func(keys []string) (int, error) {
		sum := 0
		for _, key := range keys {
			value, err := s.Get(key)
			if err != nil {
				return 0, err
			}
			text, _ := value.AsString()
			sum += len(text)
		}
		return sum, nil
	}
}

func getMany(s *snapshot.Snapshot) func([]string) (int, error) {
	values := make([]snapshot.Value, 1000)
	return func(keys []string) (int, error) {
		sum := 0
		for part := range slices.Chunk(keys, len(values)) {
			if err := s.GetMany(part, values); err != nil {
				return 0, err
			}
			for _, value := range values[:len(part)] {
				text, _ := value.AsString()
				sum += len(text)
			}
		}
		return sum, nil
	}
}

func mapLookup(entries int) func([]string) (int, error) {
	table := make(map[string]string, entries)
	for number := range entries {
		table["key_"+strconv.Itoa(number)] = "val_" + strconv.Itoa(number)
	}
	return func(keys []string) (int, error) {
		sum := 0
		for _, key := range keys {
			value, ok := table[key]
			if !ok {
				return 0, fmt.Errorf("no key %s", key)
			}
			sum += len(value)
		}
		return sum, nil
	}
}

var bucketName = []byte("bucket")

// sortedRows returns the keys and values, sorted by key.
func sortedRows(entries int) [][2]string {
	rows := make([][2]string, entries)
	for number := range rows {
		suffix := strconv.Itoa(number)
		rows[number] = [2]string{"key_" + suffix, "val_" + suffix}
	}
	slices.SortFunc(rows, func(a, b [2]string) int {
		if a[0] < b[0] {
			return -1
		}
		return 1
	})
	return rows
}

// newTree writes rows, which are sorted by key, to a file of bbolt and opens it.
func newTree(path string, rows [][2]string) (*bbolt.DB, error) {
	tree, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	err = tree.Update(func(txn *bbolt.Tx) error {
		bucket, err := txn.CreateBucket(bucketName)
		if err != nil {
			return err
		}
		bucket.FillPercent = 1
		for _, row := range rows {
			if err := bucket.Put([]byte(row[0]), []byte(row[1])); err != nil {
				return err
			}
		}
		return nil
	})
	return tree, err
}

// treeLookup looks up all keys in one transaction, and copies each value to a string.
func treeLookup(tree *bbolt.DB) func([]string) (int, error) {
	return func(keys []string) (int, error) {
		sum := 0
		err := tree.View(func(txn *bbolt.Tx) error {
			bucket := txn.Bucket(bucketName)
			for _, key := range keys {
				sum += len(string(bucket.Get([]byte(key))))
			}
			return nil
		})
		return sum, err
	}
}
